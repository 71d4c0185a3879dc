// ---- Summary and problems ----

function tile(name, value, note, style) {
  return make('div', { class: `tile ${style ?? ''}` }, make('span', { class: 'name' }, name), make('strong', {}, value), make('span', { class: 'note', title: note }, note ?? ''));
}

const sum = (list, of) => list.reduce((before, one) => before + of(one), 0);

function showSummary() {
  byId('title').textContent = visible(trace.title);
  document.title = `${visible(trace.title)} · Event trace`;
  const sessions = trace.sessions;
  const [events, buffers] = [sum(sessions, (one) => one.events_lost), sum(sessions, (one) => one.buffers_lost)];
  const damages = sum(sessions, (one) => one.damage_count);
  const skipped = sessions.flatMap((one) => one.skipped);
  const problems = sum(trace.problems, ([, events]) => events);
  byId('summary').append(
    tile('Sessions', count(sessions.length), sessions.map((one) => visible(one.name || one.file)).join(', ')),
    tile('Time span', duration(trace.span), trace.events > 0 ? absolute(0).replace(/\.\d+/, '') : 'no events'),
    tile('Events', count(trace.events), trace.shown < trace.events ? `${count(trace.shown)} in the table` : 'all in the table'),
    tile('Rate', rate(trace.events, trace.span), `${plural(trace.processors.length, 'processor')}, ${plural(trace.threads.length, 'thread')}`),
    tile('Lost', events || buffers ? [events && plural(events, 'event'), buffers && plural(buffers, 'buffer')].filter(Boolean).join(', ') : 'none', 'by the sessions', events || buffers ? 'bad' : ''),
    tile('Damaged parts', damages ? count(damages) : 'none', 'of the files', damages ? 'bad' : ''),
    tile('Not decoded', problems ? plural(problems, 'event') : 'none', skipped.length ? `and ${plural(sum(skipped, (one) => one.records), 'record')} skipped` : 'no record skipped', problems ? 'warn' : ''),
  );
  showSampling();
  showProblems();
}

const CLASS_TEXTS = [
  'errors, warnings and events with problems',
  () => `that are among the first ${trace.first_of_kind} of their kind`,
  'starts and stops of activities',
  'other events',
];

/** Shows how many of the trace's events are on the page. */
function showSampling() {
  if (trace.shown >= trace.events) return;
  const box = byId('sampling');
  box.hidden = false;
  box.append(make('p', {}, make('strong', {}, `A sample: ${count(trace.shown)} of ${count(trace.events)} events are in the table and the lanes. `),
    'The summary, the problems, the densities of the whole trace and the tab “Counts and rates” count all events; the filters count the sample.'));
  const list = make('ul');
  trace.classes.forEach(([events, shown], at) => {
    if (events === 0) return;
    const text = typeof CLASS_TEXTS[at] === 'function' ? CLASS_TEXTS[at]() : CLASS_TEXTS[at];
    const spread = at === 2 ? '; an activity is shown completely or not at all' : ', evenly spread over the trace';
    const kept = shown === events ? `all ${count(events)}` : `${count(shown)} of ${count(events)} (${percent(shown, events)})`;
    list.append(make('li', {}, `${kept} ${text}${shown === events ? '' : spread}`));
  });
  if (trace.unlisted > 0) list.append(make('li', {}, `none of ${plural(trace.unlisted, 'event')} of more kinds or threads than a page can list`));
  box.append(list);
}

/** The name of a session's file, without its folder. */
const fileName = (session) => visible(session.file.split(/[\\/]/).at(-1) || session.name);

/** Lists the problems, worst first. */
function showProblems() {
  const lines = [];
  const line = (style, letter, text, events, act, title) => lines.push(make('li', { class: style },
    make('span', { class: `badge ${style}`, 'aria-hidden': 'true' }, letter),
    act ? button(text, act, { class: 'link', title: title ?? 'Show these events' }) : make('span', {}, text),
    make('span', { class: 'number' }, events === null ? '' : count(events))));
  for (const one of trace.sessions) {
    const name = fileName(one);
    if (one.events_lost) line('error', '!', `${name}: the session lost events; its buffers were full`, one.events_lost);
    if (one.buffers_lost) line('error', '!', `${name}: the session lost buffers`, one.buffers_lost);
    for (const damage of one.damages.slice(0, 5)) line('error', '!', `${name}: ${visible(damage)}`, null);
    if (one.damage_count > 5) line('error', '!', `${name}: more damaged parts; see Sessions`, one.damage_count - Math.min(5, one.damages.length));
  }
  const byKind = trace.kinds.filter((kind) => kind.level >= 1 && kind.level <= 3)
    .sort((a, b) => a.level - b.level || b.count - a.count);
  for (const kind of byKind.slice(0, 12)) {
    const { style, letter } = levelOf(kind.level);
    line(style, letter, `${kind.level_name ? visible(kind.level_name) : levelOf(kind.level).name}: ${kind.label} of ${kind.from.label}`, kind.count, () => {
      clearFilters();
      filter.event.set(eventKey(kind), true);
      filter.level.set(String(kind.level), true);
      changed('push');
      goTo('events');
    });
  }
  if (byKind.length > 12) {
    line('warning', 'W', `More kinds of errors and warnings: ${count(byKind.length - 12)}`, sum(byKind.slice(12), (kind) => kind.count), () => {
      clearFilters();
      for (const level of ['1', '2', '3']) filter.level.set(level, true);
      changed('push');
      goTo('events');
    });
  }
  for (const [text, events] of [...trace.problems].sort((a, b) => b[1] - a[1]).slice(0, 8)) {
    line('warning', '?', `Not decoded: ${visible(text)}`, events, () => {
      clearFilters();
      filter.problem.set(text, true);
      changed('push');
      goTo('events');
    });
  }
  if (trace.problems.length > 8) line('warning', '?', 'Not decoded for other reasons', sum(trace.problems, ([, events]) => events) - sum([...trace.problems].sort((a, b) => b[1] - a[1]).slice(0, 8), ([, events]) => events));
  if (spans.open.length > 0) {
    const first = spans.start[spans.open[0]];
    line('info', 'i', `Activities started but not stopped in the trace, the first at ${since(columns.time[first])} s: ${kindOf(first).label}`, spans.open.length, () => openEvent(first), 'Open the first one');
  }
  for (const one of trace.sessions) {
    if (one.unmatched_stacks) line('info', 'i', `${fileName(one)}: call stacks that belong to no event`, one.unmatched_stacks);
    if (one.late) line('info', 'i', `${fileName(one)}: records that came after a later one`, one.late);
    if (one.dropped) line('info', 'i', `${fileName(one)}: names and stacks that did not fit in memory`, one.dropped);
    for (const skipped of one.skipped) line('info', 'i', `${fileName(one)}: skipped records: ${visible(skipped.kind)} (${bytesText(skipped.bytes)})`, skipped.records);
  }
  byId('problems').append(lines.length > 0 ? make('ul', { class: 'problems' }, ...lines)
    : make('p', { class: 'good' }, 'No errors, warnings, losses or damages, and every event was decoded.'));
}
