// ---- Activities as spans ----

const OPCODE_START = 1;
const OPCODE_STOP = 2;
/** The maximum number of rows of spans; further overlapping spans are drawn in the last row. */
const MOST_SPAN_ROWS = 64;

/** The spans: the event numbers of start and stop, and the row; `stop` is -1 without a stop. */
const spans = { start: new Uint32Array(0), stop: new Int32Array(0), row: new Uint8Array(0), rows: 0, open: [] };

/**
 * Pairs each stop with the latest open start with the same provider, activity and task. A span is
 * placed below a span of the same activity, or of the related activity that its start names.
 */
function findSpans() {
  const tasks = new Map();
  const taskOf = trace.kinds.map((kind) => {
    const key = `${kind.provider} ${kind.task}`;
    if (!tasks.has(key)) tasks.set(key, tasks.size);
    return tasks.get(key);
  });
  const opcodes = Uint8Array.from(trace.kinds, (kind) => kind.opcode);
  const open = new Map();
  const [starts, stops] = [[], []];
  for (let event = 0; event < total; event += 1) {
    const kind = columns.kind[event];
    const activity = columns.activity[event];
    if (activity === 0 || (opcodes[kind] !== OPCODE_START && opcodes[kind] !== OPCODE_STOP)) continue;
    const key = activity * tasks.size + taskOf[kind];
    if (opcodes[kind] === OPCODE_START) {
      const span = starts.push(event) - 1;
      stops.push(-1);
      const stack = open.get(key);
      if (stack) stack.push(span);
      else open.set(key, [span]);
    } else {
      const span = open.get(key)?.pop();
      if (span !== undefined) stops[span] = event;
    }
  }
  spans.start = Uint32Array.from(starts);
  spans.stop = Int32Array.from(stops);
  spans.row = new Uint8Array(starts.length);
  spans.open = [];
  const ends = [];
  /** The row and the end of the last span of each activity. */
  const last = new Map();
  for (let span = 0; span < starts.length; span += 1) {
    const [from, to] = spanTimes(span);
    if (stops[span] < 0) spans.open.push(span);
    const [own, related] = [last.get(columns.activity[starts[span]]), last.get(columns.related[starts[span]])];
    let row = 0;
    for (const above of [own, related]) if (above && above.end > from) row = Math.max(row, above.row + 1);
    while (row < MOST_SPAN_ROWS - 1 && ends[row] > from) row += 1;
    row = Math.min(row, MOST_SPAN_ROWS - 1);
    for (let at = ends.length; at <= row; at += 1) ends[at] = -1;
    ends[row] = Math.max(ends[row], to, from + 1);
    spans.row[span] = row;
    const before = last.get(columns.activity[starts[span]]);
    if (!before || before.end <= from) last.set(columns.activity[starts[span]], { row, end: to });
    else before.row = Math.max(before.row, row);
  }
  spans.rows = ends.length;
}

/** The times of a span; a span without a stop lasts until the end of the trace. */
function spanTimes(span) {
  const stop = spans.stop[span];
  return [columns.time[spans.start[span]], stop < 0 ? trace.span : columns.time[stop]];
}
