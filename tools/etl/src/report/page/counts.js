// ---- Counts and sessions ----

/** The maximum number of kinds of events to list at once. */
const MOST_KINDS = 1000;

function dataTable(caption, headings, lines) {
  const numbers = headings.map((heading) => heading.startsWith('#'));
  return make('table', { class: 'data' }, make('caption', {}, caption),
    make('thead', {}, make('tr', {}, ...headings.map((heading, at) => make('th', { scope: 'col', class: numbers[at] ? 'number' : '' }, heading.replace('#', ''))))),
    make('tbody', {}, ...lines.map((line) => make('tr', {}, ...line.map((cell, at) => make('td', { class: numbers[at] ? 'number' : '' }, ...[cell].flat()))))));
}

function bar(part, whole) {
  const meter = make('span', { class: 'meter', 'aria-hidden': 'true' }, make('i'));
  meter.firstChild.style.width = `${whole > 0 ? Math.max(1, (part / whole) * 100) : 0}%`;
  return meter;
}

function only(facet, value) {
  clearFilters();
  filter[facet].set(value, true);
  changed('push');
  goTo('events');
}

/** All counts are exact: they include events that are not in the table. */
function showCounts() {
  const box = byId('panel-counts');
  const exact = trace.events;
  const sorted = [...trace.kinds].sort((a, b) => b.count - a.count);
  const providers = new Map();
  for (const kind of trace.kinds) {
    const known = providers.get(kind.from.label) ?? { events: 0, kinds: 0, worst: [0, 0, 0, 0] };
    known.events += kind.count;
    known.kinds += 1;
    if (kind.level >= 1 && kind.level <= 3) known.worst[kind.level] += kind.count;
    providers.set(kind.from.label, known);
  }
  const processes = new Map();
  for (const [process, , events] of trace.threads) {
    const known = processes.get(process) ?? { events: 0, threads: 0 };
    known.events += events;
    known.threads += 1;
    processes.set(process, known);
  }
  const link = (text, facet, value) => button(text, () => only(facet, value), { class: 'link' });
  box.append(
    dataTable('Providers', ['Provider', '#Kinds', '#Errors', '#Warnings', '#Events', '#Share', '', '#Rate'], [...providers].sort((a, b) => b[1].events - a[1].events)
      .map(([label, one]) => [link(label, 'provider', label), count(one.kinds), count(one.worst[1] + one.worst[2]), count(one.worst[3]), count(one.events), percent(one.events, exact), bar(one.events, exact), rate(one.events, trace.span)])),
    dataTable(sorted.length > MOST_KINDS ? `Events: the ${count(MOST_KINDS)} most frequent of ${count(sorted.length)} kinds` : 'Events', ['Event', 'Provider', '#Id', 'Level', '#Events', '#Share', '', '#Rate'], sorted.slice(0, MOST_KINDS)
      .map((kind) => [link(kind.label, 'event', eventKey(kind)), kind.from.label, String(kind.id), levelBadge(kind.level, kind.level_name && visible(kind.level_name)), count(kind.count), percent(kind.count, exact), bar(kind.count, exact), rate(kind.count, trace.span)])),
    dataTable('Processes', ['Process', '#Threads', '#Events', '#Share', '', '#Rate'], [...processes].sort((a, b) => b[1].events - a[1].events).slice(0, MOST_KINDS)
      .map(([process, one]) => [link(processText(process), 'process', String(process)), count(one.threads), count(one.events), percent(one.events, exact), bar(one.events, exact), rate(one.events, trace.span)])),
    dataTable('Processors', ['Processor', '#Events', '#Share', '', '#Rate'], [...trace.processors].sort((a, b) => a[0] - b[0])
      .map(([cpu, events]) => [link(`CPU ${cpu}`, 'cpu', String(cpu)), count(events), percent(events, exact), bar(events, exact), rate(events, trace.span)])),
  );
}

function showSessions() {
  const box = byId('panel-sessions');
  box.append(dataTable('Sessions', ['File', 'Session', 'Started', 'Stopped', 'System', '#Processors', '#Events', '#Events lost', '#Buffers lost'], trace.sessions.map((one) => [
    visible(one.file), visible(one.name), one.start, one.end ?? 'not stopped', visible(one.system), count(one.processors), count(one.events), count(one.events_lost), count(one.buffers_lost),
  ])));
  for (const one of trace.sessions) {
    if (one.damage_count > 0) {
      box.append(make('h3', {}, `${visible(one.file)}: ${plural(one.damage_count, 'damaged part')}`),
        make('ul', {}, ...one.damages.map((damage) => make('li', {}, visible(damage)))));
      if (one.damage_count > one.damages.length) box.append(make('p', {}, `and ${count(one.damage_count - one.damages.length)} more`));
    }
    if (one.skipped.length > 0) {
      box.append(dataTable(`${visible(one.file)}: skipped records`, ['Kind', '#Records', '#Bytes'], one.skipped.map((kind) => [visible(kind.kind), count(kind.records), count(kind.bytes)])));
    }
  }
}
