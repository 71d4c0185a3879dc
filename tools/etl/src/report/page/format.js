// ---- Text ----

const numbers = new Intl.NumberFormat('en-US');
const count = (value) => numbers.format(value);

function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const TICKS_PER_SECOND = 1e7;

/** A duration in a suitable unit. Times are in ticks of 100 ns. */
function duration(ticks) {
  const size = Math.abs(ticks);
  if (size === 0) return '0 s';
  if (size < 1e4) return `${trim(ticks / 10, 1)} µs`;
  if (size < 1e7) return `${trim(ticks / 1e4, 3)} ms`;
  if (size < 120 * 1e7) return `${trim(ticks / 1e7, 3)} s`;
  const seconds = Math.floor(size / 1e7);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${hours ? `${count(hours)} h ` : ''}${minutes} min ${seconds % 60} s`;
}

function trim(value, digits) {
  const text = value.toFixed(digits);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Seconds since the start of the trace, with seven digits. */
function since(ticks) {
  const sign = ticks < 0 ? '-' : '';
  const size = Math.abs(ticks);
  const whole = Math.floor(size / TICKS_PER_SECOND);
  return `${sign}${whole}.${String(Math.round(size - whole * TICKS_PER_SECOND)).padStart(7, '0')}`;
}

const FILETIME_OF_UNIX_EPOCH = 116444736000000000n;

/** The time of day, in UTC, of a time since the start. */
function absolute(ticks) {
  const unix = BigInt(trace.origin) + BigInt(Math.round(ticks)) - FILETIME_OF_UNIX_EPOCH;
  let seconds = unix / 10000000n;
  let rest = unix % 10000000n;
  if (rest < 0n) {
    rest += 10000000n;
    seconds -= 1n;
  }
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return `FILETIME ${BigInt(trace.origin) + BigInt(ticks)}`;
  return `${date.toISOString().slice(0, 19).replace('T', ' ')}.${String(rest).padStart(7, '0')} UTC`;
}

function rate(events, ticks) {
  if (ticks <= 0) return '–';
  const perSecond = events / (ticks / TICKS_PER_SECOND);
  if (perSecond >= 100) return `${count(Math.round(perSecond))}/s`;
  return `${Number(perSecond.toPrecision(3))}/s`;
}

const percent = (part, whole) => (whole > 0 ? `${trim((part / whole) * 100, 1)} %` : '–');

function bytesText(size) {
  if (size < 10000) return plural(size, 'byte');
  return size < 1e7 ? `${trim(size / 1e3, 1)} kB` : `${trim(size / 1e6, 1)} MB`;
}

/** Characters that would reorder, hide or break other text. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const ESCAPES = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
function visible(text) {
  return text.replace(CONTROL, (c) => ESCAPES[c] ?? `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** A field's value as one line; `details.rs` describes the value's form. */
function valueText(value, inner = false) {
  if (typeof value === 'string') {
    if (value.startsWith("'")) return inner ? `"${visible(value.slice(1))}"` : visible(value.slice(1));
    if (value.startsWith('#')) return `hex:${value.slice(1)}`;
    return visible(value);
  }
  if (value === null || typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map((one) => valueText(one, true)).join(', ')}]`;
  if (value.s) return `{${value.s.map(([name, one]) => `${visible(name)}=${valueText(one, true)}`).join(', ')}}`;
  return `${visible(value.n)} (${valueText(value.v)})`;
}

/** The levels by number: their names and CSS classes. */
const LEVELS = [
  { name: 'Always', letter: 'A', style: 'other' },
  { name: 'Critical', letter: 'C', style: 'critical' },
  { name: 'Error', letter: 'E', style: 'error' },
  { name: 'Warning', letter: 'W', style: 'warning' },
  { name: 'Information', letter: 'I', style: 'info' },
  { name: 'Verbose', letter: 'V', style: 'verbose' },
];
const levelOf = (level) => LEVELS[level] ?? { name: `Level ${level}`, letter: String(level), style: 'other' };

function levelBadge(level, name) {
  const known = levelOf(level);
  return make('span', { class: `badge ${known.style}`, title: `Level ${level}` }, name || known.name);
}
