// ---- Filters on the page ----

const FACET_TITLES = { provider: 'Provider', event: 'Event', level: 'Level', keyword: 'Keyword', process: 'Process', thread: 'Thread', cpu: 'Processor', activity: 'Activity', problem: 'Problem' };
const FACET_ORDER = ['level', 'provider', 'event', 'keyword', 'process', 'activity', 'problem', 'cpu', 'thread'];
/** The number of a facet's values to list before "more". */
const FEW_VALUES = 8;
const longFacets = new Set();
const facetQueries = new Map();

function levelName(level) {
  const kind = trace.kinds.find((one) => String(one.level) === level && one.level_name);
  return kind ? visible(kind.level_name) : levelOf(Number(level)).name;
}

const threadNumbers = new Map();

/** The name of a thread, from its process and id. */
function threadLabel(value) {
  if (threadNumbers.size === 0) trace.threads.forEach(([process, thread], number) => threadNumbers.set(`${process}:${thread}`, number));
  const number = threadNumbers.get(value);
  return number === undefined ? value : threadText(number);
}

/** The name of a facet's value. */
function valueLabel(facet, value) {
  if (facet === 'event') return value.slice(value.indexOf('/') + 1);
  if (facet === 'level') return levelName(value);
  if (facet === 'process') return processText(Number(value));
  if (facet === 'thread') return threadLabel(value);
  if (facet === 'cpu') return `CPU ${value}`;
  if (facet === 'problem') return visible(value);
  if (facet === 'activity' && activityNumber(value)) return `${activityShort(activityNumber(value))}  ${value}`;
  return value;
}

/** Shows only this value, or hides it; a second call undoes that. */
function toggleFilter(facet, value, show) {
  if (filter[facet].get(value) === show) filter[facet].delete(value);
  else filter[facet].set(value, show);
  changed('push');
}

function showFacets() {
  const box = byId('facet-list');
  const focus = document.activeElement?.closest?.('#facet-list') ? document.activeElement.dataset : null;
  const focused = focus && { ...focus };
  box.replaceChildren(...FACET_ORDER.map(facetBox).filter(Boolean));
  if (focused) {
    const again = [...box.querySelectorAll('button, input')].find((one) => one.dataset.facet === focused.facet && one.dataset.value === focused.value && one.dataset.act === focused.act);
    again?.focus({ preventScroll: true });
  }
}

function facetBox(facet) {
  const counts = facetCounts[facet];
  const chosen = filter[facet];
  let values = [...counts.entries()];
  if (values.length === 0 || (values.length === 1 && chosen.size === 0 && facet !== 'level' && facet !== 'provider')) return null;
  if (facet === 'level' || facet === 'cpu') values.sort((a, b) => Number(a[0]) - Number(b[0]));
  else values.sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  const query = facetQueries.get(facet) ?? '';
  if (query) values = values.filter(([value]) => valueLabel(facet, value).toLowerCase().includes(query));
  values.sort((a, b) => Number(chosen.has(b[0])) - Number(chosen.has(a[0])) || 0);
  if (facet === 'level' || facet === 'cpu') values.sort((a, b) => Number(a[0]) - Number(b[0]));
  const many = values.length > FEW_VALUES + 2;
  const all = longFacets.has(facet);
  const listed = many && !all ? values.slice(0, FEW_VALUES) : values.slice(0, 200);
  const sameNames = facet === 'event' && new Set([...counts.keys()].map((value) => valueLabel(facet, value))).size < counts.size;
  const list = make('ul', {}, ...listed.map(([value, events]) => {
    const state = chosen.get(value);
    const label = sameNames ? `${valueLabel(facet, value)} · ${value.slice(0, value.indexOf('/'))}` : valueLabel(facet, value);
    const name = facet === 'level' ? [make('span', { class: `badge ${levelOf(Number(value)).style}`, 'aria-hidden': 'true' }, levelOf(Number(value)).letter), ` ${label}`] : [label];
    const show = make('button', {
      type: 'button', class: 'value', 'aria-pressed': String(state === true), title: `Show only ${FACET_TITLES[facet].toLowerCase()} ${label}`,
      data: { facet, value, act: 'show' }, on: { click: () => toggleFilter(facet, value, true) },
    }, make('span', { class: 'text' }, ...name), make('span', { class: 'number' }, count(events)));
    const hide = make('button', {
      type: 'button', class: 'hide', 'aria-pressed': String(state === false), 'aria-label': `Hide ${label}`, title: `Hide ${label}`,
      data: { facet, value, act: 'hide' }, on: { click: () => toggleFilter(facet, value, false) },
    }, '−');
    return make('li', { class: state === true ? 'on' : state === false ? 'off' : '' }, show, hide);
  }));
  const children = [make('h3', {}, FACET_TITLES[facet])];
  if (counts.size > 20) {
    children.push(make('input', {
      type: 'search', placeholder: `Find among ${facet === 'activity' && counts.size >= 200 ? 'the most frequent ' : ''}${count(counts.size)}`, 'aria-label': `Find in ${FACET_TITLES[facet]}`, value: query, data: { facet, act: 'find' },
      on: { input: (event) => { facetQueries.set(facet, event.target.value.toLowerCase()); showFacets(); } },
    }));
  }
  children.push(list);
  if (many) {
    children.push(button(all ? 'Fewer' : `${count(values.length - FEW_VALUES)} more`, () => {
      if (all) longFacets.delete(facet);
      else longFacets.add(facet);
      showFacets();
    }, { class: 'link more', data: { facet, act: 'more' } }));
  }
  return make('div', { class: 'facet', data: { facet } }, ...children);
}

/** Shows each active filter with a button that removes it. */
function showChips() {
  const chips = [];
  const chip = (text, remove) => chips.push(make('button', { type: 'button', class: 'chip', 'aria-label': `Remove the filter: ${text}`, on: { click: () => { remove(); changed('push'); } } }, text, make('span', { 'aria-hidden': 'true' }, ' ×')));
  if (filter.query) {
    chip(`“${visible(filter.query)}”`, () => {
      filter.query = '';
    });
  }
  if (filter.range) {
    chip(`${since(filter.range[0])} to ${since(filter.range[1])} s`, () => {
      filter.range = null;
    });
  }
  for (const facet of FACETS) {
    for (const [value, show] of filter[facet]) chip(`${show ? '' : 'not '}${FACET_TITLES[facet].toLowerCase()} ${valueLabel(facet, value)}`, () => filter[facet].delete(value));
  }
  byId('chips').replaceChildren(...chips);
  byId('clear').disabled = chips.length === 0;
  byId('zoom-range').disabled = !filter.range;
}

function showCount() {
  const box = byId('shown');
  const sample = trace.shown < trace.events ? ' in the sample' : '';
  box.textContent = `${count(rows.length)} of ${plural(total, 'event')}${sample}${search.done ? '' : `, searching ${Math.round(search.progress * 100)} %`}`;
  byId('table').dataset.shown = rows.length;
  document.body.dataset.searching = search.done ? 'no' : 'yes';
}
