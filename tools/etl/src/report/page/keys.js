// ---- Keys and themes ----

const KEYS = [
  ['/', 'search'], ['?', 'show these keys'], ['Escape', 'close the event, leave the search, clear the range'],
  ['t, l, f', 'go to the table, the timeline, the filters'], ['1, 2, 3', 'show the events, the counts, the sessions'],
  ['↑ ↓ Page Up Page Down Home End', 'in the table: move'], ['Enter', 'in the table: open the event'],
  ['w, s or + −', 'in the timeline: zoom in, zoom out'], ['a, d or ← →', 'in the timeline: pan'], ['0', 'in the timeline: show the whole trace'],
  ['r', 'in the timeline: select what is in view as the range'], ['z', 'in the timeline: zoom to the range'],
];

function pageKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || byId('help').open) return;
  const typing = event.target.matches?.('input:not([type=radio]), textarea, select');
  if (event.key === 'Escape') {
    if (typing) event.target.blur();
    else if (selected !== null) closeEvent();
    else if (filter.range) {
      filter.range = null;
      changed('push');
    }
    return;
  }
  if (typing) return;
  const acts = {
    '/': () => byId('search').focus(), '?': showHelp, t: () => byId('table').focus(), l: () => byId('timeline').focus(),
    f: () => byId('facets').querySelector('summary').focus(), 1: () => goTo('events'), 2: () => goTo('counts'), 3: () => goTo('sessions'),
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function showHelp() {
  byId('help').showModal();
}

function startKeys() {
  byId('help-keys').append(make('dl', {}, ...KEYS.flatMap(([key, text]) => [make('dt', {}, make('kbd', {}, key)), make('dd', {}, text)])),
    make('p', {}, 'The address keeps the view: filters, search, range, sorting and the open event. Copy it to come back, or to show somebody what you see.'));
  byId('help-button').addEventListener('click', showHelp);
  byId('help').addEventListener('keydown', (event) => event.key === 'Escape' && byId('help').close());
  document.addEventListener('keydown', pageKey);
  byId('tabs').addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    goTo(TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]);
    byId(`tab-${tab}`).focus();
  });
  for (const name of TABS) byId(`tab-${name}`).addEventListener('click', () => goTo(name));
}

const THEME_KEY = 'etl-report-theme';

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  readColors();
  redraw();
}

function startTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  // Some browsers deny storage to pages from files.
  try {
    setTheme(localStorage.getItem(THEME_KEY));
  } catch {
    setTheme(null);
  }
  dark.addEventListener('change', () => setTheme(null));
  byId('theme').addEventListener('click', () => {
    const now = document.documentElement.dataset.theme ?? (dark.matches ? 'dark' : 'light');
    const next = now === 'dark' ? 'light' : 'dark';
    setTheme(next);
    try {
      localStorage.setItem(THEME_KEY, next);
    } catch {
      // The choice applies until the page is closed.
    }
  });
}

/** The maximum number of rows to print. */
const MOST_PRINTED = 500;

/** Before printing, adds all rows to the page, because paper does not scroll. */
function startPrinting() {
  window.addEventListener('beforeprint', () => {
    const element = byId('rows');
    element.style.transform = 'none';
    const first = Math.floor(table.top);
    const printed = [];
    for (let at = first; at < Math.min(rows.length, first + MOST_PRINTED); at += 1) printed.push(rowElement(at));
    element.replaceChildren(...printed);
  });
  window.addEventListener('afterprint', () => setTop(table.top));
}
