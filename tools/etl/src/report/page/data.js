// ---- Data ----

/** The description of the trace; `writer.rs` describes its parts. */
let trace;
/** The columns, indexed by event; `columns.rs` describes their form. */
const columns = { time: null, kind: null, thread: null, processor: null, activity: null, related: null, problem: null };
/** The number of events on the page. */
let total = 0;
let activityBytes = new Uint8Array(0);
let density = new Uint32Array(0);

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

const parts = new Map();

/** Returns the bytes of a part of the page. */
async function part(name) {
  const element = parts.get(name);
  if (!element) throw new Error(`the page has no part "${name}"; it may be cut off`);
  const packed = new Blob([fromBase64(element.textContent)]);
  const unpacked = packed.stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

function readBlock(bytes, first) {
  const rows = new DataView(bytes.buffer).getUint32(0, true);
  let at = 4;
  let time = 0;
  for (let row = first; row < first + rows; row += 1) {
    let scale = 1;
    let byte;
    do {
      byte = bytes[at];
      at += 1;
      time += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    columns.time[row] = time;
  }
  for (const column of [columns.kind, columns.thread, columns.processor, columns.activity, columns.related, columns.problem]) {
    const width = bytes[at];
    at += 1;
    for (let plane = 0; plane < width; plane += 1) {
      const shift = plane * 8;
      for (let row = first; row < first + rows; row += 1, at += 1) column[row] |= bytes[at] << shift;
    }
  }
  return first + rows;
}

/** Reads all data that the filters and the timeline need. */
async function load() {
  for (const element of document.querySelectorAll('script[data-part]')) parts.set(element.dataset.part, element);
  const description = byId('description');
  if (!description) throw new Error('the page has no description of its data; it may be cut off');
  trace = JSON.parse(description.textContent);
  total = trace.shown;
  columns.time = new Float64Array(total);
  columns.kind = new Uint16Array(total);
  columns.processor = new Uint16Array(total);
  columns.problem = new Uint16Array(total);
  for (const name of ['thread', 'activity', 'related']) columns[name] = new Uint32Array(total);
  const blocks = [];
  for (let block = 0; block < trace.blocks; block += 1) blocks.push(part(`block-${block}`));
  let first = 0;
  for (const block of blocks) first = readBlock(await block, first);
  activityBytes = await part('activities');
  density = new Uint32Array((await part('density')).buffer);
  for (const [number, kind] of trace.kinds.entries()) {
    kind.number = number;
    kind.from = trace.providers[kind.provider];
    kind.from.label = visible(kind.from.name ?? kind.from.guid);
    kind.label = kind.name ? visible(kind.name) : kindFallback(kind);
  }
}

function kindFallback(kind) {
  if (kind.task_name) return visible(kind.opcode_name ? `${kind.task_name} ${kind.opcode_name}` : kind.task_name);
  return `event ${kind.id}`;
}

/** The numbers of activities whose GUIDs were shown. */
const activityNumbers = new Map();

/** The GUID of an activity by its number; '' for 0. */
function activityText(number) {
  if (number === 0) return '';
  const bytes = activityBytes.subarray((number - 1) * 16, number * 16);
  if (bytes.length < 16) return '';
  const hex = (from, to) => Array.from(bytes.subarray(from, to), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const swapped = (from, to) => Array.from(bytes.subarray(from, to), (byte) => byte.toString(16).padStart(2, '0')).reverse().join('');
  const text = `${swapped(0, 4)}-${swapped(4, 6)}-${swapped(6, 8)}-${hex(8, 10)}-${hex(10, 16)}`;
  if (activityNumbers.size > 20000) activityNumbers.clear();
  activityNumbers.set(text, number);
  return text;
}

/** The name of an activity where its GUID does not fit. */
const activityShort = (number) => (number === 0 ? '' : `#${number}`);

/** The number of an activity by its GUID; 0 if there is none. */
function activityNumber(text) {
  const wanted = text.toLowerCase();
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(wanted)) return 0;
  const known = activityNumbers.get(wanted);
  if (known !== undefined) return known;
  const activities = activityBytes.length / 16;
  const tail = [24, 26, 28, 30, 32, 34].map((from) => parseInt(wanted.slice(from, from + 2), 16));
  for (let number = 1; number <= activities; number += 1) {
    const at = number * 16 - 6;
    if (tail.every((byte, place) => activityBytes[at + place] === byte) && activityText(number) === wanted) return number;
  }
  return 0;
}

const kindOf = (event) => trace.kinds[columns.kind[event]];
const processOf = (event) => trace.threads[columns.thread[event]][0];
const threadOf = (event) => trace.threads[columns.thread[event]][1];

/** The text of a process or thread id; the largest number means none. */
const idText = (id) => (id === 0xffffffff ? 'unknown' : String(id));

/** The name of a thread, as `name (id)` if it has one. */
function threadText(number) {
  const [, id, , name] = trace.threads[number];
  return name ? `${visible(name)} (${id})` : idText(id);
}

function processText(id) {
  const name = trace.processes[id];
  return name ? `${visible(name)} (${id})` : idText(id);
}

/** The chunks of details that have been read, latest last. */
const chunks = new Map();
const MOST_CHUNKS = 24;

/** Returns the number of the chunk that contains an event. */
function chunkOf(event) {
  let [low, high] = [0, trace.chunks.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (trace.chunks[middle] <= event) low = middle;
    else high = middle - 1;
  }
  return low;
}

const decoder = new TextDecoder();

/** Returns the unparsed lines of a chunk. */
async function chunkText(number) {
  return decoder.decode(await part(`details-${number}`));
}

/** Returns a chunk's rows if they have been read. */
const chunkNow = (number) => chunks.get(number)?.rows;

/** Reads a chunk's rows. */
function chunkRows(number) {
  let entry = chunks.get(number);
  if (entry) {
    chunks.delete(number);
  } else {
    entry = { rows: null };
    entry.promise = chunkText(number).then((text) => {
      entry.rows = text.split('\n');
      entry.rows.pop();
      return entry.rows;
    });
    entry.promise.catch(() => chunks.delete(number));
  }
  chunks.set(number, entry);
  if (chunks.size > MOST_CHUNKS) chunks.delete(chunks.keys().next().value);
  return entry.promise;
}

/** Parses a line into an object with the event's names, values and other properties. */
function parseLine(line) {
  const [shape, ...values] = JSON.parse(line);
  const names = shape === null ? values[values.length - 1].names : trace.shapes[shape];
  const extra = values.length > names.length ? values.pop() : {};
  return { ...extra, names, values };
}

/** Returns the details of an event if they have been read. */
function detailsNow(event) {
  const chunk = chunkOf(event);
  const rows = chunkNow(chunk);
  return rows ? parseLine(rows[event - trace.chunks[chunk]]) : undefined;
}

/** Reads the details of an event. */
async function details(event) {
  const chunk = chunkOf(event);
  const rows = await chunkRows(chunk);
  return parseLine(rows[event - trace.chunks[chunk]]);
}

/** The text about an event in a row of the table. */
function summaryText(one) {
  const text = one.message ? visible(one.message)
    : one.values.map((value, at) => `${visible(one.names[at])}=${valueText(value, true)}`).join('  ');
  return [text, one.problems ? `[${one.problems.join('; ')}]` : '', !text && one.leftover ? `hex:${one.leftover}` : '']
    .filter(Boolean).join(' ');
}

/** Returns the first event at or after a time. */
function firstAt(time) {
  let [low, high] = [0, total];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (columns.time[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
