// ---- Search ----

/** The events that match the search, as one byte for each event, or null without a search. */
const search = { hits: null, found: 0, done: true, progress: 1, running: 0 };

/** The number of chunks to decompress at the same time. */
const READ_AHEAD = 6;

/** Returns true if a value, or an element of it, contains the text. */
function valueHas(value, wanted) {
  if (value !== null && typeof value === 'object' && value.s) {
    return value.s.some(([name, one]) => name.toLowerCase().includes(wanted) || valueHas(one, wanted));
  }
  return valueText(value).toLowerCase().includes(wanted);
}

/** Returns true if a value equals the text, or is a text that contains it. */
function valueIs(value, wanted) {
  if (typeof value === 'string' && value.startsWith("'")) return value.slice(1).toLowerCase().includes(wanted);
  if (value !== null && typeof value === 'object' && value.n) return value.n.toLowerCase().includes(wanted) || valueText(value.v) === wanted;
  return valueText(value).toLowerCase() === wanted;
}

function detailsHave(one, wanted, pair) {
  if (one.message?.toLowerCase().includes(wanted)) return true;
  if (one.leftover?.includes(wanted.replace(/^hex:/, '').replaceAll(' ', ''))) return true;
  if (one.problems?.some((problem) => problem.toLowerCase().includes(wanted))) return true;
  if (one.stack?.some((frame) => String(frame).toLowerCase().includes(wanted))) return true;
  return one.values.some((value, at) => {
    const name = one.names[at].toLowerCase();
    if (pair && name === pair.name && valueIs(value, pair.value)) return true;
    return name.includes(wanted) || valueHas(value, wanted);
  });
}

/**
 * Finds the events whose names, ids, message, fields or values contain the query, or whose field has
 * the value in `name=value`. Calls `report` from time to time.
 */
async function runSearch(query, report) {
  const run = (search.running += 1);
  const wanted = query.trim().toLowerCase();
  if (wanted === '') {
    Object.assign(search, { hits: null, found: 0, done: true, progress: 1 });
    return;
  }
  const hits = new Uint8Array(total);
  Object.assign(search, { hits, found: 0, done: false, progress: 0 });
  const has = (text) => text !== undefined && text !== null && String(text).toLowerCase().includes(wanted);
  const kinds = trace.kinds.map((kind) => has(kind.from.label) || has(kind.from.guid) || has(kind.label) || has(kind.level_name)
    || has(kind.task_name) || has(kind.opcode_name) || kind.keywords.some(has));
  const threads = trace.threads.map(([process, thread, , name]) => has(trace.processes[process]) || has(name)
    || String(process) === wanted || String(thread) === wanted);
  const activity = activityNumber(wanted);
  const problems = [false, ...trace.problems.map(([text]) => has(text))];
  for (let event = 0; event < total; event += 1) {
    if (kinds[columns.kind[event]] || threads[columns.thread[event]] || problems[columns.problem[event]]
      || (activity !== 0 && (columns.activity[event] === activity || columns.related[event] === activity))) {
      hits[event] = 1;
      search.found += 1;
    }
  }
  const equals = wanted.indexOf('=');
  const pair = equals > 0 ? { name: wanted.slice(0, equals).trim(), value: wanted.slice(equals + 1).trim() } : null;
  // Most chunks are only searched as text: if a line does not contain the text in this form, none
  // of its values does. Lines do not contain field names, so the shapes are searched first.
  const shapes = trace.shapes.some((names) => names.some((name) => name.toLowerCase().includes(wanted)));
  const inLine = JSON.stringify(pair ? pair.value : wanted).slice(1, -1);
  const plain = !shapes && /^[\x20-\x7e]+$/.test(inLine) && !/[\\"(){}[\],=]|hex:/.test(inLine);
  let reported = performance.now();
  // The browser decompresses some chunks while others are being searched.
  const ahead = [];
  const readAhead = () => {
    while (ahead.length < READ_AHEAD && next < trace.chunks.length) {
      const text = chunkText(next);
      text.catch(() => {});
      ahead.push(text);
      next += 1;
    }
  };
  let next = 0;
  for (let number = 0; number < trace.chunks.length; number += 1) {
    readAhead();
    const text = await ahead.shift();
    if (run !== search.running) return;
    const first = trace.chunks[number];
    const test = (event, line) => {
      if (hits[event] === 0 && detailsHave(parseLine(line), wanted, pair)) {
        hits[event] = 1;
        search.found += 1;
      }
    };
    if (plain) {
      const lower = text.toLowerCase();
      if (lower.length === text.length) {
        let event = first;
        let start = 0;
        for (let at = lower.indexOf(inLine); at >= 0; at = lower.indexOf(inLine, start)) {
          for (let end = text.indexOf('\n', start); end < at; end = text.indexOf('\n', start)) {
            start = end + 1;
            event += 1;
          }
          const end = text.indexOf('\n', at);
          test(event, text.slice(start, end));
          start = end + 1;
          event += 1;
        }
      } else {
        text.split('\n').forEach((line, at) => line && test(first + at, line));
      }
    } else {
      text.split('\n').forEach((line, at) => line && test(first + at, line));
    }
    search.progress = (number + 1) / trace.chunks.length;
    if (performance.now() - reported > 300) {
      report();
      await breathe();
      if (run !== search.running) return;
      reported = performance.now();
    }
  }
  search.done = true;
  search.progress = 1;
}
