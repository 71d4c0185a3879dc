'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const ROW_HEIGHT = 22;
const LANE_HEIGHT = 20;
/** Spans that are drawn; more cannot be told apart on a screen. */
const MAX_SPANS = 5000;
/** How much a timeline can be stretched; browsers have widest elements. */
const MAX_ZOOM = 4096;
const [TIME, PROVIDER, NAME, LEVEL, PROCESS, THREAD, PROCESSOR, ACTIVITY, TEXT] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function table(headings, rows, numbers) {
  const made = element('table');
  const head = made.createTHead().insertRow();
  for (const heading of headings) head.append(element('th', heading));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((cell, at) => line.append(element('td', String(cell), numbers.includes(at) ? 'number' : '')));
  }
  return made;
}

function milliseconds(nanoseconds) {
  return (nanoseconds / 1e6).toFixed(4);
}

function showSessions() {
  const rows = data.sessions.map((one) => [
    one.file, one.name, one.start, one.end ?? 'not stopped', one.events, one.events_lost, one.buffers_lost,
  ]);
  const box = document.getElementById('sessions');
  box.append(table(['File', 'Session', 'Start', 'End', 'Events', 'Events lost', 'Buffers lost'], rows, [4, 5, 6]));
  for (const one of data.sessions) {
    if (one.events_lost || one.buffers_lost) {
      box.append(element('p', `${one.file}: ${one.events_lost} events and ${one.buffers_lost} buffers were lost.`, 'lost'));
    }
    for (const damage of one.damages) box.append(element('p', `${one.file}: ${damage}`, 'lost'));
  }
}

function showCounts() {
  const rows = data.counts.map(([provider, name, level, count]) => [data.providers[provider], name, data.levels[level], count]);
  document.getElementById('counts').append(table(['Provider', 'Event', 'Level', 'Events'], rows, [3]));
}

/** Puts spans in lanes, so that none lies on another one. */
function lanes(spans) {
  const ends = [];
  return spans.map(([start, stop]) => {
    const from = data.events[start][TIME];
    let lane = ends.findIndex((end) => end <= from);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = Math.max(data.events[stop][TIME], from + 1);
    return lane;
  });
}

function showTimeline() {
  const box = document.getElementById('timeline');
  const inner = document.getElementById('lanes');
  box.dataset.total = data.spans.length;
  if (data.spans.length === 0) {
    document.getElementById('spans-none').hidden = false;
    document.getElementById('zoom').hidden = true;
    box.hidden = true;
    return;
  }
  const spans = data.spans.slice(0, MAX_SPANS);
  const last = Math.max(1, data.events[data.events.length - 1][TIME]);
  const places = lanes(spans);
  spans.forEach(([start, stop], at) => {
    const [first, end] = [data.events[start], data.events[stop]];
    const made = element('div', first[NAME], 'span');
    made.style.left = `${(first[TIME] / last) * 100}%`;
    made.style.width = `${((end[TIME] - first[TIME]) / last) * 100}%`;
    made.style.top = `${places[at] * LANE_HEIGHT + 2}px`;
    made.title = `${first[NAME]} of ${data.providers[first[PROVIDER]]}, activity ${data.activities[first[ACTIVITY]]}: `
      + `${milliseconds(end[TIME] - first[TIME])} ms from ${milliseconds(first[TIME])} ms`;
    made.addEventListener('click', () => setFilter(data.activities[first[ACTIVITY]]));
    inner.append(made);
  });
  inner.style.height = `${(Math.max(...places) + 1) * LANE_HEIGHT + 6}px`;
  let zoom = 1;
  const scale = (factor) => {
    // Keep the center of the view in place.
    const middle = (box.scrollLeft + box.clientWidth / 2) / box.scrollWidth;
    zoom = Math.min(MAX_ZOOM, Math.max(1, zoom * factor));
    inner.style.width = `${zoom * 100}%`;
    box.scrollLeft = middle * box.scrollWidth - box.clientWidth / 2;
    document.getElementById('zoom-text').textContent = `${milliseconds(last / zoom)} ms in view, of ${milliseconds(last)} ms`;
  };
  document.getElementById('zoom-in').addEventListener('click', () => scale(4));
  document.getElementById('zoom-out').addEventListener('click', () => scale(1 / 4));
  scale(1);
}

const columns = [
  ['ms', (event) => milliseconds(event[TIME]), TIME],
  ['Provider', (event) => data.providers[event[PROVIDER]]],
  ['Event', (event) => event[NAME]],
  ['Level', (event) => data.levels[event[LEVEL]]],
  ['Process', (event) => String(event[PROCESS]), PROCESS],
  ['Thread', (event) => String(event[THREAD]), THREAD],
  ['CPU', (event) => String(event[PROCESSOR]), PROCESSOR],
  ['Activity', (event) => data.activities[event[ACTIVITY]]],
  ['Fields', (event) => event[TEXT]],
];

const view = document.getElementById('table');
let shown = data.events.map((_, at) => at);
let order = { column: 0, down: false };

/** Draws the rows that can be seen, and no others: there may be very many. */
function draw() {
  const rows = document.getElementById('rows');
  const first = Math.max(0, Math.floor(view.scrollTop / ROW_HEIGHT) - 10);
  const count = Math.ceil((view.clientHeight || 600) / ROW_HEIGHT) + 20;
  rows.style.top = `${first * ROW_HEIGHT}px`;
  rows.replaceChildren(...shown.slice(first, first + count).map((at) => {
    const row = element('div', undefined, 'row');
    row.setAttribute('role', 'row');
    for (const [, text] of columns) {
      const cell = element('span', text(data.events[at]));
      cell.title = cell.textContent;
      row.append(cell);
    }
    return row;
  }));
}

function refresh() {
  const wanted = document.getElementById('filter').value.toLowerCase();
  const level = document.getElementById('level').value;
  shown = [];
  data.events.forEach((event, at) => {
    if (level !== '' && event[LEVEL] !== Number(level)) return;
    if (wanted && !columns.some(([, text]) => text(event).toLowerCase().includes(wanted))) return;
    shown.push(at);
  });
  const [, text, numeric] = columns[order.column];
  const sign = order.down ? -1 : 1;
  shown.sort((a, b) => {
    const [one, other] = [data.events[a], data.events[b]];
    const difference = numeric === undefined ? text(one).localeCompare(text(other)) : one[numeric] - other[numeric];
    return sign * difference || a - b;
  });
  document.getElementById('room').style.height = `${shown.length * ROW_HEIGHT}px`;
  document.getElementById('shown').textContent = `${shown.length} of ${data.events.length} events`;
  view.dataset.shown = shown.length;
  view.scrollTop = 0;
  draw();
}

function setFilter(text) {
  document.getElementById('filter').value = text;
  refresh();
}

function showHead() {
  const head = document.getElementById('head');
  columns.forEach(([name], at) => {
    const button = element('button', name);
    button.type = 'button';
    button.addEventListener('click', () => {
      order = { column: at, down: order.column === at && !order.down };
      refresh();
    });
    head.append(button);
  });
}

/** What the address asks for: `#filter=text&level=Error&sort=Event`. */
function followAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  document.getElementById('filter').value = asked.get('filter') ?? '';
  const level = data.levels.indexOf(asked.get('level'));
  document.getElementById('level').value = level < 0 ? '' : String(level);
  const sort = asked.get('sort') ?? '';
  const column = columns.findIndex(([name]) => name === sort.replace(/^-/, ''));
  order = { column: Math.max(0, column), down: sort.startsWith('-') };
  refresh();
}

data.levels.forEach((name, at) => {
  const option = element('option', name);
  option.value = String(at);
  document.getElementById('level').append(option);
});
document.getElementById('filter').addEventListener('input', refresh);
document.getElementById('level').addEventListener('change', refresh);
document.getElementById('filter-form').addEventListener('submit', (event) => event.preventDefault());
view.addEventListener('scroll', draw);
window.addEventListener('resize', draw);
window.addEventListener('hashchange', followAddress);
showSessions();
showCounts();
showTimeline();
showHead();
followAddress();
document.body.dataset.ready = 'yes';
