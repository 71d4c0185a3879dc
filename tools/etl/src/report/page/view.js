// ---- The view in the address ----

const TABS = ['events', 'counts', 'sessions'];
let tab = 'events';
let restoring = false;

/** Writes the view as the part of an address after `#`. */
function viewText() {
  const text = new URLSearchParams();
  for (const facet of FACETS) {
    for (const [value, show] of filter[facet]) text.append(show ? facet : `not-${facet}`, value);
  }
  if (filter.query) text.set('q', filter.query);
  if (filter.range) text.set('range', filter.range.join('-'));
  if (timeline.from > 0 || timeline.to < fullSpan()) text.set('view', `${Math.floor(timeline.from)}-${Math.ceil(timeline.to)}`);
  if (timeline.lanes !== 'cpu') text.set('lanes', timeline.lanes);
  if (order.by !== 'time' || order.down) text.set('sort', `${order.down ? '-' : ''}${order.by}`);
  if (tab !== 'events') text.set('tab', tab);
  if (selected !== null) text.set('open', String(selected));
  return text.toString();
}

/** Stores the view in the address; `push` adds a browser history entry. */
function save(how) {
  if (restoring) return;
  const hash = `#${viewText()}`;
  if (hash === location.hash || (hash === '#' && location.hash === '')) return;
  const address = hash === '#' ? location.pathname + location.search : hash;
  if (how === 'push') history.pushState(null, '', address);
  else history.replaceState(null, '', address);
}

let timer = 0;
/** Stores the visible part once it has stopped changing. */
function saveSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => save('replace'), 250);
}

/** Applies the filters and shows the remaining events. */
function changed(how) {
  const query = filter.query;
  if (byId('search').value !== query) byId('search').value = query;
  if (query !== changed.query) {
    changed.query = query;
    const refresh = () => {
      applyFilters();
      showResult(true);
    };
    changed.search = runSearch(query, refresh).then(() => {
      if (search.done && filter.query === query) refresh();
    }).catch(fail);
  }
  applyFilters();
  showResult();
  save(how);
}
changed.query = '';
changed.search = Promise.resolve();

/** Shows the filtered events; `stay` keeps the position in the table. */
function showResult(stay = false) {
  const { top, at } = table;
  showFacets();
  showChips();
  showCount();
  showTable(selected);
  if (stay && selected === null) {
    table.at = Math.max(0, Math.min(at, rows.length - 1));
    setTop(top);
  }
  redraw();
}

function goTo(which) {
  showTab(which);
  save('replace');
  byId('tabs').scrollIntoView({ block: 'nearest' });
}

function showTab(which) {
  tab = TABS.includes(which) ? which : 'events';
  for (const name of TABS) {
    const chosen = name === tab;
    byId(`tab-${name}`).setAttribute('aria-selected', String(chosen));
    byId(`tab-${name}`).tabIndex = chosen ? 0 : -1;
    byId(`panel-${name}`).hidden = !chosen;
  }
  if (tab === 'events') drawRows();
}

/** Reads two times that `-` separates. */
function readTimes(text) {
  const match = /^(\d+)-(\d+)$/.exec(text ?? '');
  if (!match) return null;
  return [Number(match[1]), Number(match[2])].sort((a, b) => a - b);
}

/** Shows the view in the address, ignoring parts that do not apply to this trace. */
function restore() {
  restoring = true;
  const text = new URLSearchParams(location.hash.slice(1));
  clearFilters();
  for (const facet of FACETS) {
    for (const value of text.getAll(facet)) filter[facet].set(value, true);
    for (const value of text.getAll(`not-${facet}`)) filter[facet].set(value, false);
  }
  filter.query = text.get('q') ?? '';
  filter.range = readTimes(text.get('range'));
  const sort = text.get('sort') ?? 'time';
  order.down = sort.startsWith('-');
  order.by = TABLE_COLUMNS.some((column) => column.key === sort.replace(/^-/, '')) ? sort.replace(/^-/, '') : 'time';
  const lanesWanted = text.get('lanes') === 'thread' ? 'thread' : 'cpu';
  if (lanesWanted !== timeline.lanes) setLanes(lanesWanted);
  setView(...(readTimes(text.get('view')) ?? [0, fullSpan()]));
  const event = /^\d+$/.test(text.get('open') ?? '') ? Number(text.get('open')) : -1;
  if (event >= 0 && event < total) selected = event;
  else if (selected !== null) closeEvent(null);
  changed(null);
  showTab(text.get('tab'));
  if (selected !== null) {
    showEvent();
    showTable(selected);
  }
  restoring = false;
  clearTimeout(timer);
}
