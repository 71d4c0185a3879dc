// ---- One event ----

/** The expanded event, or null. */
let selected = null;
let opener = null;
/** The maximum number of an activity's events to list. */
const MOST_LISTED = 200;

function openEvent(event, how = 'push') {
  const before = selected;
  selected = event;
  if (before === null) opener = document.activeElement;
  const row = rowOf(event);
  if (row >= 0 && row !== table.at) {
    table.at = row;
    if (row < table.top || row >= table.top + visibleRows() - 1) setTop(row - visibleRows() / 3);
  }
  showEvent();
  drawRows();
  showInTimeline(event);
  if (before !== event) save(how);
}

function closeEvent(how = 'push') {
  if (selected === null) return;
  selected = null;
  byId('event').hidden = true;
  byId('work').classList.remove('opened');
  drawRows();
  redraw();
  const back = opener && opener.isConnected && opener !== document.body ? opener : byId('table');
  back.focus({ preventScroll: true });
  if (how) save(how);
}

function pair(name, ...value) {
  return [make('dt', {}, name), make('dd', {}, ...value)];
}

/** Shows a value; structures and arrays get separate tables. */
function valueElement(value) {
  if (value !== null && typeof value === 'object') {
    const parts = Array.isArray(value) ? value.map((one, at) => [`[${at}]`, one]) : value.s;
    if (parts && (!Array.isArray(value) || value.some((one) => one !== null && typeof one === 'object'))) return fieldsTable(parts.slice(0, 1000), parts.length);
  }
  if (typeof value === 'string' && value.startsWith('#')) return hexDump(value.slice(1));
  const style = typeof value === 'number' ? 'value number' : typeof value === 'string' && value.startsWith("'") ? 'value string' : 'value';
  return make('span', { class: style }, valueText(value));
}

function fieldsTable(fields, all = fields.length) {
  const body = make('tbody', {}, ...fields.map(([name, value]) => make('tr', {}, make('th', { scope: 'row' }, visible(name)), make('td', {}, valueElement(value)))));
  if (all > fields.length) body.append(make('tr', {}, make('td', { colspan: 2 }, `and ${count(all - fields.length)} more`)));
  return make('table', { class: 'fields' }, body);
}

function hexDump(digits) {
  const lines = [];
  for (let at = 0; at < digits.length && lines.length < 256; at += 32) {
    const bytes = digits.slice(at, at + 32).match(/../g) ?? [];
    const text = bytes.map((byte) => {
      const code = parseInt(byte, 16);
      return code >= 32 && code < 127 ? String.fromCharCode(code) : '·';
    }).join('');
    lines.push(`${(at / 2).toString(16).padStart(4, '0')}  ${bytes.join(' ').padEnd(47)}  ${text}`);
  }
  if (digits.length === 0) return make('span', { class: 'value' }, 'no bytes');
  if (lines.length * 32 < digits.length) lines.push(`and ${plural(digits.length / 2 - lines.length * 16, 'byte')} more`);
  return make('pre', { class: 'hex' }, lines.join('\n'));
}

const filterButton = (text, facet, value, title) => button(text, () => toggleFilter(facet, value, true), { class: 'link', title: title ?? `Show only this ${FACET_TITLES[facet].toLowerCase()}` });

/** Lists an activity's events and related activities. */
function activitySection(event) {
  const activity = columns.activity[event];
  const related = columns.related[event];
  if (activity === 0 && related === 0) return null;
  const section = make('section', {}, make('h3', {}, 'Activity'));
  const list = make('dl');
  if (activity) list.append(...pair('Activity', filterButton(`${activityShort(activity)} ${activityText(activity)}`, 'activity', activityText(activity), 'Show only this activity and what is related to it')));
  if (related) list.append(...pair('Related to', filterButton(`${activityShort(related)} ${activityText(related)}`, 'activity', activityText(related), 'Show only this activity and what is related to it')));
  section.append(list);
  if (activity === 0) return section;
  const own = [];
  const children = new Map();
  let ownCount = 0;
  for (let other = 0; other < total; other += 1) {
    if (columns.activity[other] === activity) {
      ownCount += 1;
      if (own.length < MOST_LISTED || other <= event) own.push(other);
      if (own.length > MOST_LISTED * 2) own.splice(0, MOST_LISTED);
    } else if (columns.related[other] === activity && children.size < MOST_LISTED && !children.has(columns.activity[other])) children.set(columns.activity[other], other);
  }
  const start = Math.max(0, own.indexOf(event) - MOST_LISTED / 2);
  const listed = own.slice(start, start + MOST_LISTED);
  const from = columns.time[listed[0]];
  section.append(make('h4', {}, `${plural(ownCount, 'event')} of the activity${listed.length < ownCount ? `, ${count(listed.length)} listed` : ''}`));
  section.append(make('ol', { class: 'steps' }, ...listed.map((other) => make('li', { class: other === event ? 'here' : '', 'aria-current': other === event ? 'true' : null },
    make('span', { class: 'number' }, `+${duration(columns.time[other] - from)}`),
    button(kindOf(other).label, () => openEvent(other), { class: 'link' }),
    make('i', { class: `badge ${levelOf(kindOf(other).level).style}`, title: levelOf(kindOf(other).level).name }, levelOf(kindOf(other).level).letter)))));
  if (children.size > 0) {
    section.append(make('h4', {}, `${plural(children.size, 'related activity', 'related activities')}`));
    section.append(make('ol', { class: 'steps' }, ...[...children].map(([number, other]) => make('li', {},
      make('span', { class: 'number' }, `+${duration(columns.time[other] - from)}`),
      button(`${kindOf(other).label} ${activityShort(number)}`, () => openEvent(other), { class: 'link' })))));
  }
  return section;
}

async function showEvent() {
  const event = selected;
  const box = byId('event');
  const kind = kindOf(event);
  let one;
  try {
    one = await details(event);
  } catch (error) {
    fail(error);
    return;
  }
  if (selected !== event) return;
  box.hidden = false;
  byId('work').classList.add('opened');
  const row = rowOf(event);
  const step = (to, text, title) => button(text, () => moveTo(to, true), { title, 'aria-label': title, disabled: row < 0 || to < 0 || to >= rows.length });
  const head = make('div', { class: 'bar' }, make('h2', {}, kind.label), levelBadge(kind.level, kind.level_name && visible(kind.level_name)),
    make('span', { class: 'buttons' }, step(row - 1, '↑', 'Previous event'), step(row + 1, '↓', 'Next event'), button('×', () => closeEvent(), { title: 'Close (Escape)', 'aria-label': 'Close' })));
  const sections = [head];
  if (one.message) sections.push(make('p', { class: 'message' }, visible(one.message)));
  if (one.problems) sections.push(make('ul', { class: 'problems' }, ...one.problems.map((problem) => make('li', {}, make('span', { class: 'badge warning', 'aria-hidden': 'true' }, '?'), make('span', {}, `Not decoded: ${visible(problem)}`)))));
  if (one.values.length > 0) sections.push(make('section', {}, make('h3', {}, 'Fields'), fieldsTable(one.values.map((value, at) => [one.names[at], value]))));
  if (one.leftover) sections.push(make('section', {}, make('h3', {}, one.values.length > 0 ? 'Bytes after the fields' : 'Payload'), hexDump(one.leftover)));
  const time = columns.time[event];
  const before = row > 0 && order.by === 'time' && !order.down ? ` (${duration(time - columns.time[rows[row - 1]])} after the one above)` : '';
  sections.push(make('section', {}, make('h3', {}, 'Where and when'), make('dl', {},
    ...pair('Time', `${since(time)} s${before}`), ...pair('', absolute(time)),
    ...pair('Process', filterButton(processText(processOf(event)), 'process', String(processOf(event)))),
    ...pair('Thread', filterButton(threadText(columns.thread[event]), 'thread', `${processOf(event)}:${threadOf(event)}`)),
    ...pair('Processor', filterButton(String(columns.processor[event]), 'cpu', String(columns.processor[event]))))));
  const activity = activitySection(event);
  if (activity) sections.push(activity);
  if (one.stack) sections.push(make('section', {}, make('h3', {}, 'Stack'), make('ol', { class: 'stack', start: 0 }, ...one.stack.map((frame) => make('li', {}, visible(String(frame)))))));
  const named = (number, name) => (name ? `${number} (${visible(name)})` : String(number));
  sections.push(make('section', {}, make('h3', {}, 'Event'), make('dl', {},
    ...pair('Provider', filterButton(kind.from.label, 'provider', kind.from.label)), ...pair('', make('span', { class: 'value' }, kind.from.guid)),
    ...(kind.from.group ? pair('Group', make('span', { class: 'value' }, kind.from.group)) : []),
    ...pair('Name', filterButton(kind.label, 'event', eventKey(kind))),
    ...(kind.form ? pair('Form', kind.form) : []),
    ...pair('Id, version', `${kind.id}, ${kind.version}`),
    ...pair('Level', named(kind.level, kind.level_name)),
    ...pair('Keywords', kind.keyword, ...kind.keywords.flatMap((name) => [' ', filterButton(visible(name), 'keyword', visible(name))])),
    ...pair('Task', named(kind.task, kind.task_name)), ...pair('Opcode', named(kind.opcode, kind.opcode_name)), ...pair('Channel', named(kind.channel, kind.channel_name)))));
  box.replaceChildren(...sections);
  box.scrollTop = 0;
  box.dataset.event = event;
}
