// ---- Table ----

const ROW_HEIGHT = 24;
/** Browsers limit the height of elements, so longer tables scroll in larger steps. */
const MOST_HEIGHT = 8e6;

const TABLE_COLUMNS = [
  { key: 'time', title: 'Time (s)', text: (event) => since(columns.time[event]), style: 'number' },
  { key: 'level', title: 'Level', text: (event) => kindOf(event).level_name ?? levelOf(kindOf(event).level).name },
  { key: 'provider', title: 'Provider', text: (event) => kindOf(event).from.label },
  { key: 'event', title: 'Event', text: (event) => kindOf(event).label },
  { key: 'cpu', title: 'CPU', text: (event) => String(columns.processor[event]), style: 'number' },
  { key: 'process', title: 'Process · thread', text: (event) => `${processText(processOf(event))} · ${threadText(columns.thread[event])}` },
  { key: 'activity', title: 'Activity', text: (event) => activityText(columns.activity[event]) },
  { key: null, title: 'Message or fields' },
];

/** The first row in view, with a fraction, and the row that has the keyboard focus. */
const table = { top: 0, at: 0, scroll: 0 };

const visibleRows = () => Math.max(1, Math.floor(byId('table').clientHeight / ROW_HEIGHT));
const lastTop = () => Math.max(0, rows.length - byId('table').clientHeight / ROW_HEIGHT);

function scrollRange() {
  const box = byId('table');
  return Math.max(0, Math.min(rows.length * ROW_HEIGHT, MOST_HEIGHT) - box.clientHeight);
}

const scaled = () => rows.length * ROW_HEIGHT > MOST_HEIGHT;

/** Scrolls so that a row is at the top of the table. */
function setTop(top) {
  table.top = Math.min(Math.max(0, top), lastTop());
  const box = byId('table');
  table.scroll = lastTop() > 0 ? (scaled() ? (table.top / lastTop()) * scrollRange() : table.top * ROW_HEIGHT) : 0;
  box.scrollTop = table.scroll;
  table.scroll = box.scrollTop;
  drawRows();
}

function scrolled() {
  const box = byId('table');
  if (Math.abs(box.scrollTop - table.scroll) < 1) return;
  table.scroll = box.scrollTop;
  table.top = scaled() ? (box.scrollTop / Math.max(1, scrollRange())) * lastTop() : box.scrollTop / ROW_HEIGHT;
  table.top = Math.min(table.top, lastTop());
  drawSoon();
}

/** Draws only the visible rows, because there can be very many. */
function drawRows() {
  const box = byId('table');
  const first = Math.max(0, Math.floor(table.top) - 4);
  const end = Math.min(rows.length, Math.ceil(table.top) + visibleRows() + 6);
  const made = [];
  for (let at = first; at < end; at += 1) made.push(rowElement(at));
  const element = byId('rows');
  element.replaceChildren(...made);
  element.style.transform = `translateY(${box.scrollTop + (first - table.top) * ROW_HEIGHT}px)`;
  box.setAttribute('aria-activedescendant', rows.length > 0 ? `row-${table.at}` : '');
  readMissing(first, end);
}

const drawSoon = perFrame(drawRows);

/** Reads the details of rows that were drawn without them. */
async function readMissing(first, end) {
  const wanted = new Set();
  for (let at = first; at < end; at += 1) wanted.add(chunkOf(rows[at]));
  const missing = [...wanted].filter((chunk) => !chunkNow(chunk)).slice(0, MOST_CHUNKS);
  if (missing.length === 0) return;
  try {
    await Promise.all(missing.map(chunkRows));
    drawSoon();
  } catch (error) {
    fail(error);
  }
}

function rowElement(at) {
  const event = rows[at];
  const kind = kindOf(event);
  const { style } = levelOf(kind.level);
  const row = make('div', {
    class: `row ${style}${at === table.at ? ' at' : ''}${event === selected ? ' open' : ''}${columns.problem[event] ? ' problem' : ''}`,
    role: 'row', id: `row-${at}`, 'aria-rowindex': at + 2, 'aria-selected': String(event === selected), data: { at },
  });
  for (const column of TABLE_COLUMNS.slice(0, -1)) {
    const text = column.text(event);
    const cell = make('span', { role: 'gridcell', class: column.style ?? column.key, title: text });
    if (column.key === 'level') cell.append(make('i', { class: `badge ${style}` }, levelOf(kind.level).letter), make('span', {}, ` ${visible(text)}`));
    else if (column.key === 'activity') cell.textContent = activityShort(columns.activity[event]);
    else cell.textContent = text;
    row.append(cell);
  }
  const one = detailsNow(event);
  const text = one ? summaryText(one) : '…';
  row.append(make('span', { role: 'gridcell', class: 'text', title: text.slice(0, 500) }, text.slice(0, 1000)));
  return row;
}

/** Moves the keyboard focus to a row, and scrolls the row into view. */
function moveTo(at, open = selected !== null) {
  if (rows.length === 0) return;
  table.at = Math.min(Math.max(0, at), rows.length - 1);
  const seen = visibleRows();
  if (table.at < table.top) setTop(table.at);
  else if (table.at >= table.top + seen - 1) setTop(table.at - seen + 1.5);
  else drawRows();
  if (open) openEvent(rows[table.at], 'replace');
}

function tableKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const page = Math.max(1, visibleRows() - 1);
  const acts = {
    ArrowDown: () => moveTo(table.at + 1), ArrowUp: () => moveTo(table.at - 1), PageDown: () => moveTo(table.at + page), PageUp: () => moveTo(table.at - page),
    Home: () => moveTo(0), End: () => moveTo(rows.length - 1), Enter: () => rows.length > 0 && openEvent(rows[table.at]), ' ': () => rows.length > 0 && openEvent(rows[table.at]),
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function showHead() {
  byId('head').replaceChildren(...TABLE_COLUMNS.map((column) => {
    if (!column.key) return make('span', {}, column.title);
    const sorted = order.by === column.key;
    return make('button', {
      type: 'button', class: column.style ?? '', data: { sort: column.key }, 'aria-pressed': String(sorted),
      title: sorted ? `Sorted ${order.down ? 'down' : 'up'}; click to reverse` : `Sort by ${column.title}`,
      on: {
        click: () => {
          order.down = order.by === column.key && !order.down;
          order.by = column.key;
          changed('push');
          byId('head').querySelector(`[data-sort=${column.key}]`).focus();
        },
      },
    }, column.title, make('span', { 'aria-hidden': 'true' }, sorted ? (order.down ? ' ▾' : ' ▴') : ''));
  }));
}

/** Redraws the rows after the filters or the order have changed. */
function showTable(keep) {
  showHead();
  byId('room').style.height = `${Math.min(rows.length * ROW_HEIGHT, MOST_HEIGHT)}px`;
  byId('table').style.setProperty('--rows', `${Math.max(5, rows.length) * ROW_HEIGHT + 2}px`);
  byId('table').setAttribute('aria-rowcount', String(rows.length + 1));
  const kept = keep === null || keep === undefined ? -1 : rowOf(keep);
  if (kept >= 0) {
    table.at = kept;
    setTop(Math.max(0, kept - visibleRows() / 3));
  } else {
    table.at = 0;
    setTop(0);
  }
}

/** Returns the row of an event, or -1. */
function rowOf(event) {
  if (order.by !== 'time') return rows.indexOf(event);
  let [low, high] = [0, rows.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (rows[middle] === event) return middle;
    if ((rows[middle] < event) !== order.down) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

function startTable() {
  const box = byId('table');
  box.addEventListener('scroll', scrolled);
  box.addEventListener('keydown', tableKey);
  box.addEventListener('wheel', (event) => {
    if (!scaled() || event.ctrlKey || event.shiftKey || event.deltaY === 0) return;
    event.preventDefault();
    setTop(table.top + (event.deltaMode === 1 ? event.deltaY : event.deltaY / ROW_HEIGHT));
  }, { passive: false });
  byId('rows').addEventListener('click', (event) => {
    const row = event.target.closest('.row');
    if (!row || !window.getSelection().isCollapsed) return;
    table.at = Number(row.dataset.at);
    openEvent(rows[table.at]);
  });
  new ResizeObserver(() => setTop(table.top)).observe(box);
}
