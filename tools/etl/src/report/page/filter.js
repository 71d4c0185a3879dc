// ---- Filters ----

/** The bits for the reasons why an event is not shown. */
const MISS = { provider: 1, event: 2, level: 4, keyword: 8, process: 16, thread: 32, cpu: 64, activity: 128, problem: 256, search: 512, range: 1024 };
const KIND_FACETS = ['provider', 'event', 'level', 'keyword'];
const FACETS = [...KIND_FACETS, 'process', 'thread', 'cpu', 'activity', 'problem'];
const NO_KEYWORD = '(none)';

/**
 * The user's filters. A facet maps values to true (show these) or false (hide these);
 * a range has two times.
 */
const filter = { range: null, query: '' };
for (const facet of FACETS) filter[facet] = new Map();

/** The numbers of the events that pass all filters, in table order. */
let rows = new Uint32Array(0);
/** The numbers of the events that pass all filters except the range, in time order. */
let matched = new Uint32Array(0);
/** The numbers of events that pass the other filters, by facet. */
let facetCounts = {};

const eventKey = (kind) => `${kind.from.label}/${kind.label}`;
const problemKey = (number) => (number === 0 ? '(none)' : trace.problems[number - 1][0]);

/** The values of a facet that a kind has. */
const kindValues = {
  provider: (kind) => [kind.from.label],
  event: (kind) => [eventKey(kind)],
  level: (kind) => [String(kind.level)],
  keyword: (kind) => (kind.keywords.length > 0 ? kind.keywords.map(visible) : [NO_KEYWORD]),
};

/** Returns true if values pass a facet's filter. */
function passes(wanted, values) {
  let [including, included] = [false, false];
  for (const [value, show] of wanted) {
    const has = values.includes(value);
    if (has && !show) return false;
    including ||= show;
    included ||= show && has;
  }
  return !including || included;
}

function missesOfKinds() {
  return Uint16Array.from(trace.kinds, (kind) => {
    let miss = 0;
    for (const facet of KIND_FACETS) {
      if (filter[facet].size > 0 && !passes(filter[facet], kindValues[facet](kind))) miss |= MISS[facet];
    }
    return miss;
  });
}

function missesOfThreads() {
  return Uint16Array.from(trace.threads, ([process, thread]) => {
    let miss = passes(filter.process, [String(process)]) ? 0 : MISS.process;
    if (!passes(filter.thread, [`${process}:${thread}`])) miss |= MISS.thread;
    return miss;
  });
}

function missesOfActivities() {
  const miss = new Uint8Array(activityBytes.length / 16 + 1);
  if (filter.activity.size === 0) return miss;
  const including = [...filter.activity.values()].some(Boolean);
  miss.fill(including ? 1 : 0);
  for (const [value, show] of filter.activity) {
    const number = activityNumber(value);
    if (number > 0) miss[number] = show ? 0 : 2;
  }
  return miss;
}

/** Applies all filters. */
function applyFilters() {
  const kinds = missesOfKinds();
  const threads = missesOfThreads();
  const cpus = new Uint16Array(65536);
  for (const [cpu] of trace.processors) if (!passes(filter.cpu, [String(cpu)])) cpus[cpu] = MISS.cpu;
  const problems = Uint16Array.from({ length: trace.problems.length + 1 }, (_, number) => (
    passes(filter.problem, number === 0 ? ['(none)'] : [problemKey(number), '(any)']) ? 0 : MISS.problem));
  const activities = missesOfActivities();
  const byActivity = filter.activity.size > 0;
  const hits = search.hits;
  const first = filter.range ? firstAt(filter.range[0]) : 0;
  const end = filter.range ? firstAt(filter.range[1] + 1) : total;
  const all = {
    kind: new Uint32Array(trace.kinds.length), thread: new Uint32Array(trace.threads.length), cpu: new Uint32Array(65536),
    activity: new Uint32Array(activities.length), problem: new Uint32Array(problems.length),
  };
  const only = {};
  for (const facet of KIND_FACETS) only[MISS[facet]] = [new Uint32Array(trace.kinds.length), columns.kind];
  for (const facet of ['process', 'thread']) only[MISS[facet]] = [new Uint32Array(trace.threads.length), columns.thread];
  only[MISS.cpu] = [new Uint32Array(65536), columns.processor];
  only[MISS.activity] = [new Uint32Array(activities.length), columns.activity];
  only[MISS.problem] = [new Uint32Array(problems.length), columns.problem];
  const { kind, thread, processor, activity, related, problem } = columns;
  const shown = new Uint32Array(total);
  const timed = new Uint32Array(total);
  let [shownCount, timedCount] = [0, 0];
  for (let event = 0; event < total; event += 1) {
    let miss = kinds[kind[event]] | threads[thread[event]] | cpus[processor[event]] | problems[problem[event]];
    if (byActivity) {
      const own = activities[activity[event]];
      if (own === 2 || (own === 1 && (related[event] === 0 || activities[related[event]] !== 0))) miss |= MISS.activity;
    }
    if (hits && hits[event] === 0) miss |= MISS.search;
    if (event < first || event >= end) miss |= MISS.range;
    if (miss === 0) {
      all.kind[kind[event]] += 1;
      all.thread[thread[event]] += 1;
      all.cpu[processor[event]] += 1;
      all.activity[activity[event]] += 1;
      all.problem[problem[event]] += 1;
      shown[shownCount] = event;
      shownCount += 1;
      timed[timedCount] = event;
      timedCount += 1;
    } else if ((miss & (miss - 1)) === 0) {
      if (miss === MISS.range) {
        timed[timedCount] = event;
        timedCount += 1;
      } else if (miss !== MISS.search) {
        const [counts, column] = only[miss];
        counts[column[event]] += 1;
      }
    }
  }
  rows = shown.slice(0, shownCount);
  matched = timed.slice(0, timedCount);
  facetCounts = countFacets(all, only);
  sortRows();
}

function countFacets(all, only) {
  const counts = {};
  const add = (facet, value, more) => {
    if (more > 0 || filter[facet].has(value)) counts[facet].set(value, (counts[facet].get(value) ?? 0) + more);
  };
  for (const facet of FACETS) counts[facet] = new Map();
  for (const kind of trace.kinds) {
    for (const facet of KIND_FACETS) {
      const more = all.kind[kind.number] + only[MISS[facet]][0][kind.number];
      for (const value of kindValues[facet](kind)) add(facet, value, more);
    }
  }
  trace.threads.forEach(([process, thread], number) => {
    add('process', String(process), all.thread[number] + only[MISS.process][0][number]);
    add('thread', `${process}:${thread}`, all.thread[number] + only[MISS.thread][0][number]);
  });
  for (const [cpu] of trace.processors) add('cpu', String(cpu), all.cpu[cpu] + only[MISS.cpu][0][cpu]);
  trace.problems.forEach(([text], at) => add('problem', text, all.problem[at + 1] + only[MISS.problem][0][at + 1]));
  // There can be very many activities; the largest ones suffice.
  const sums = all.activity.map((events, number) => events + only[MISS.activity][0][number]);
  const largest = [];
  let least = 0;
  for (let number = 1; number < sums.length; number += 1) {
    if (sums[number] <= least) continue;
    largest.push(number);
    if (largest.length > 2000) {
      largest.sort((a, b) => sums[b] - sums[a]).length = 200;
      least = sums[largest[199]];
    }
  }
  largest.sort((a, b) => sums[b] - sums[a] || a - b).length = Math.min(largest.length, 200);
  for (const number of largest) add('activity', activityText(number), sums[number]);
  for (const value of filter.activity.keys()) if (!counts.activity.has(value)) add('activity', value, sums[activityNumber(value)] ?? 0);
  return counts;
}

/** The column by which the table is sorted, and the direction. */
const order = { by: 'time', down: false };

const orderKeys = {
  level: () => ranksOf(trace.kinds, (kind) => kind.level, columns.kind),
  provider: () => ranksOf(trace.kinds, (kind) => kind.from.label, columns.kind),
  event: () => ranksOf(trace.kinds, (kind) => kind.label, columns.kind),
  cpu: () => [columns.processor, 65536],
  process: () => ranksOf(trace.threads, ([process, thread]) => process * 4294967296 + thread, columns.thread),
  activity: () => [columns.activity, activityBytes.length / 16 + 1],
};

/** Returns each event's rank, by a key of the item that its column refers to. */
function ranksOf(things, key, column) {
  const keys = things.map(key);
  const sorted = [...new Set(keys)].sort((a, b) => (typeof a === 'number' ? a - b : a.localeCompare(b)));
  const rank = new Map(sorted.map((one, at) => [one, at]));
  const ranks = Uint32Array.from(keys, (one) => rank.get(one));
  return [{ at: (event) => ranks[column[event]] }, sorted.length];
}

/** Sorts the rows; rows with equal keys stay in time order. */
function sortRows() {
  if (order.by !== 'time') {
    const [keys, size] = orderKeys[order.by]();
    const key = typeof keys.at === 'function' && !ArrayBuffer.isView(keys) ? keys.at : (event) => keys[event];
    const starts = new Uint32Array(size + 1);
    for (const event of rows) starts[key(event) + 1] += 1;
    for (let at = 0; at < size; at += 1) starts[at + 1] += starts[at];
    const sorted = new Uint32Array(rows.length);
    for (const event of rows) {
      sorted[starts[key(event)]] = event;
      starts[key(event)] += 1;
    }
    rows = sorted;
  }
  if (order.down) rows.reverse();
}

function clearFilters() {
  for (const facet of FACETS) filter[facet].clear();
  filter.range = null;
  filter.query = '';
}
