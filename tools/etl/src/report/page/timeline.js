// ---- Timeline ----

/** The width of the labels, which is smaller on narrow screens. */
let GUTTER = 132;
const RULER = 20;
const DENSITY_HEIGHT = 52;
const LANE_HEIGHT = 18;
/** The maximum number of lanes; a trace can have very many threads. */
const MOST_LANES = 500;
/** The styles of levels, least important first; a later style covers an earlier one. */
const STYLES = ['other', 'verbose', 'info', 'warning', 'error', 'critical'];
const styleIndex = (level) => Math.max(0, STYLES.indexOf(levelOf(level).style));

/** The visible part of the timeline: start and end times, and lanes. */
const timeline = { from: 0, to: 1, lanes: 'cpu', drag: null, rects: [], marks: [] };
let colors = {};

/** Reads the colors of the style sheet, which depend on the theme. */
function readColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  colors = Object.fromEntries(['text', 'muted', 'line', 'panel', 'accent', 'range', 'span', 'span-text', 'faint', ...STYLES].map((name) => [name, color(name)]));
}

/** Gives a canvas the resolution of the screen, and returns its context in CSS pixels. */
function prepare(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  return context;
}

const plotWidth = () => Math.max(50, byId('lanes-scroll').clientWidth - GUTTER);
const xOf = (time) => GUTTER + ((time - timeline.from) / (timeline.to - timeline.from)) * plotWidth();
const timeOf = (x) => timeline.from + ((x - GUTTER) / plotWidth()) * (timeline.to - timeline.from);
const fullSpan = () => Math.max(1, trace.span);

/** The lanes: label, the facet values that they represent, and the number of events. */
let lanes = [];
/** The lane of each processor or thread; MOST_LANES if there is none. */
let laneOf = new Uint16Array(0);

function findLanes() {
  if (timeline.lanes === 'cpu') {
    const cpus = [...trace.processors].sort((a, b) => a[0] - b[0]).slice(0, MOST_LANES);
    laneOf = new Uint16Array(65536).fill(MOST_LANES);
    lanes = cpus.map(([cpu, events], at) => {
      laneOf[cpu] = at;
      return { label: `CPU ${cpu}`, facet: 'cpu', value: String(cpu), events };
    });
  } else {
    const threads = trace.threads.map(([process, thread, events], number) => ({ process, thread, events, number }));
    const processes = new Map();
    for (const one of threads) processes.set(one.process, (processes.get(one.process) ?? 0) + one.events);
    threads.sort((a, b) => b.events - a.events).length = Math.min(threads.length, MOST_LANES);
    threads.sort((a, b) => processes.get(b.process) - processes.get(a.process) || a.process - b.process || a.thread - b.thread);
    laneOf = new Uint16Array(trace.threads.length).fill(MOST_LANES);
    lanes = threads.map((one, at) => {
      laneOf[one.number] = at;
      return { label: `${processText(one.process)} · ${threadText(one.number)}`, facet: 'thread', value: `${one.process}:${one.thread}`, events: one.events };
    });
  }
}

const spanTop = () => RULER + DENSITY_HEIGHT;
const lanesTop = () => spanTop() + (spans.rows > 0 ? spans.rows * LANE_HEIGHT + 8 : 0);
const roomHeight = () => lanesTop() + lanes.length * LANE_HEIGHT + 4;

function ticks(from, to, width) {
  const wanted = ((to - from) / width) * 110;
  let step = 1;
  for (const factor of [1, 2, 5]) {
    const candidate = factor * 10 ** Math.ceil(Math.log10(Math.max(1, wanted / factor)));
    if (step === 1 || candidate < step) step = candidate;
  }
  const list = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) list.push(time);
  return [list, step];
}

/** Formats a time on the ruler, with as many digits as the distance between marks requires. */
function tickText(time, step) {
  if (step < 1e4) return `${trim(time / 10, 1)} µs`;
  if (step < 1e7) return `${trim(time / 1e4, 3)} ms`;
  return `${trim(time / 1e7, 3)} s`;
}

/** Adds the counts of the whole trace to columns, splitting intervals that span two columns. */
function addBins(counts, width, place) {
  const [bin, widthOfBin] = trace.bins;
  for (let at = 0; at < density.length; at += 6) {
    const [left, right] = [place(bin + (at / 6) * widthOfBin), place(bin + (at / 6 + 1) * widthOfBin)];
    const [first, last] = [Math.floor(left), Math.max(Math.floor(left), Math.ceil(right) - 1)];
    if (last < 0 || first >= width) continue;
    for (let level = 0; level < 6; level += 1) {
      if (density[at + level] === 0) continue;
      for (let column = Math.max(0, first); column <= Math.min(width - 1, last); column += 1) {
        const share = first === last ? 1 : (Math.min(right, column + 1) - Math.max(left, column)) / (right - left);
        counts[column * STYLES.length + styleIndex(level)] += density[at + level] * share;
      }
    }
  }
}

/** Counts events by screen column and style. */
function countColumns(width) {
  const counts = new Float64Array(width * STYLES.length);
  const scale = width / (timeline.to - timeline.from);
  const widthOfBin = trace.bins[1];
  const exact = !anyOtherFilter() && widthOfBin * scale <= 1.5;
  if (exact) {
    addBins(counts, width, (time) => (time - timeline.from) * scale);
  } else {
    eachMatched((event, x) => {
      counts[x * STYLES.length + kindStyles[columns.kind[event]]] += 1;
    }, width);
  }
  return [counts, exact];
}

let kindStyles = new Uint8Array(0);
const anyOtherFilter = () => filter.query !== '' || FACETS.some((facet) => filter[facet].size > 0);

/** Calls `act` with each visible event that passes the filters, and its column. */
function eachMatched(act, width) {
  const scale = width / (timeline.to - timeline.from);
  const { time } = columns;
  let [low, high] = [0, matched.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time[matched[middle]] < timeline.from) low = middle + 1;
    else high = middle;
  }
  for (; low < matched.length; low += 1) {
    const event = matched[low];
    if (time[event] > timeline.to) break;
    act(event, Math.min(width - 1, Math.floor((time[event] - timeline.from) * scale)));
  }
}

function drawDensity(context, width) {
  const [counts, exact] = countColumns(width);
  let most = 1;
  for (let x = 0; x < width; x += 1) {
    let all = 0;
    for (let style = 0; style < STYLES.length; style += 1) all += counts[x * STYLES.length + style];
    if (all > most) most = all;
  }
  const sparse = matched.length < width;
  const bottom = RULER + DENSITY_HEIGHT - 4;
  const height = DENSITY_HEIGHT - 8;
  for (let x = 0; x < width; x += 1) {
    let y = bottom;
    for (let style = 0; style < STYLES.length; style += 1) {
      const value = counts[x * STYLES.length + style];
      if (value === 0) continue;
      // Even the smallest count is visible.
      const size = Math.max(style >= 3 ? 3 : 1, (value / most) * height);
      context.fillStyle = colors[STYLES[style]];
      context.fillRect(GUTTER + x, Math.max(RULER, y - size), sparse ? 2 : 1, size);
      y -= size;
    }
  }
  context.fillStyle = colors.muted;
  context.textAlign = 'left';
  context.fillText('Density', 8, RULER + 14);
  const pixel = (timeline.to - timeline.from) / width;
  const perPixel = `most ${count(Math.ceil(most))} in ${duration(Number(pixel.toPrecision(3)))}`;
  context.fillText(pixel < 1 || perPixel.length > 20 || GUTTER < 100 ? `most ${count(Math.ceil(most))}` : perPixel, 8, RULER + 30);
  byId('timeline').dataset.density = exact ? 'exact' : 'shown';
}

function drawSpans(context, width, top, height) {
  if (spans.rows === 0) return;
  context.fillStyle = colors.muted;
  context.fillText('Activities', 8, spanTop() + 9 - top);
  const lastX = new Float64Array(spans.rows).fill(-10);
  const only = filter.activity.size > 0 ? missesOfActivities() : null;
  context.textAlign = 'left';
  for (let span = 0; span < spans.start.length; span += 1) {
    const [from, to] = spanTimes(span);
    if (from > timeline.to) break;
    if (to < timeline.from) continue;
    const row = spans.row[span];
    const y = spanTop() + row * LANE_HEIGHT - top + 2;
    if (y < RULER + DENSITY_HEIGHT - LANE_HEIGHT || y > height) continue;
    const left = Math.max(GUTTER, xOf(from));
    const right = Math.min(GUTTER + width, Math.max(left + 1.5, xOf(to)));
    if (right <= lastX[row] + 0.5) continue;
    lastX[row] = right;
    const activity = columns.activity[spans.start[span]];
    const faint = only && only[activity] !== 0;
    const open = spans.stop[span] < 0;
    context.globalAlpha = faint ? 0.25 : 1;
    context.fillStyle = colors.span;
    if (open) {
      context.strokeStyle = colors.accent;
      context.setLineDash([4, 3]);
      context.strokeRect(left + 0.5, y + 0.5, Math.max(1, right - left - 1), LANE_HEIGHT - 5);
      context.setLineDash([]);
    } else {
      context.fillRect(left, y, right - left, LANE_HEIGHT - 4);
      context.fillStyle = colors.accent;
      context.fillRect(left, y, 1.5, LANE_HEIGHT - 4);
    }
    if (right - left > 34) {
      context.save();
      context.beginPath();
      context.rect(left, y, right - left - 2, LANE_HEIGHT - 4);
      context.clip();
      context.fillStyle = colors['span-text'];
      context.fillText(`${kindOf(spans.start[span]).label}  ${duration(to - from)}${open ? ' …' : ''}`, left + 5, y + 8);
      context.restore();
    }
    context.globalAlpha = 1;
    if (timeline.rects.length < 20000) timeline.rects.push([left, y, right, y + LANE_HEIGHT - 4, span]);
  }
}

function drawLanes(context, width, top, height) {
  const first = Math.max(0, Math.floor((top + spanTop() - lanesTop()) / LANE_HEIGHT));
  const end = Math.min(lanes.length, Math.ceil((top + height - lanesTop()) / LANE_HEIGHT));
  if (end <= first) return;
  // Ordinary events and problems, counted separately so that neither covers the other.
  const usual = new Uint8Array((end - first) * width);
  const alarms = new Uint8Array((end - first) * width);
  const amounts = new Uint32Array((end - first) * width);
  const column = timeline.lanes === 'cpu' ? columns.processor : columns.thread;
  eachMatched((event, x) => {
    const lane = laneOf[column[event]] - first;
    if (lane < 0 || lane >= end - first) return;
    const at = lane * width + x;
    const style = kindStyles[columns.kind[event]] + 1;
    if (style > 3) {
      if (alarms[at] < style) alarms[at] = style;
    } else {
      if (usual[at] < style) usual[at] = style;
      amounts[at] += 1;
    }
  }, width);
  const sparse = matched.length < width;
  context.textAlign = 'left';
  for (let lane = first; lane < end; lane += 1) {
    const y = lanesTop() + lane * LANE_HEIGHT - top;
    if (y < spanTop() - LANE_HEIGHT) continue;
    context.fillStyle = colors.faint;
    context.fillRect(GUTTER, y + 2, width, LANE_HEIGHT - 4);
    const chosen = filter[lanes[lane].facet].get(lanes[lane].value);
    context.fillStyle = chosen ? colors.accent : colors.text;
    context.save();
    context.beginPath();
    context.rect(0, y, GUTTER - 6, LANE_HEIGHT);
    context.clip();
    context.fillText(lanes[lane].label, 8, y + LANE_HEIGHT / 2);
    context.restore();
    for (let x = 0; x < width; x += 1) {
      const at = (lane - first) * width + x;
      if (usual[at] > 0) {
        context.globalAlpha = Math.min(1, 0.65 + Math.log2(amounts[at]) / 14);
        context.fillStyle = colors[STYLES[usual[at] - 1]];
        context.fillRect(GUTTER + x, y + 3, sparse ? 2 : 1.25, LANE_HEIGHT - 6);
      }
      if (alarms[at] > 0) {
        // Problems are at the top of a lane, so that color is not the only distinction.
        context.globalAlpha = 1;
        context.fillStyle = colors[STYLES[alarms[at] - 1]];
        context.fillRect(GUTTER + x, y, 2, 8);
      }
    }
    context.globalAlpha = 1;
  }
}

function drawRuler(context, width) {
  context.fillStyle = colors.panel;
  context.fillRect(0, 0, GUTTER + width, RULER);
  const [list, step] = ticks(timeline.from, timeline.to, width);
  context.textAlign = 'left';
  for (const time of list) {
    const x = xOf(time);
    context.fillStyle = colors.line;
    context.fillRect(x, 0, 1, RULER);
    context.fillStyle = colors.muted;
    if (x < GUTTER + width - 40) context.fillText(tickText(time, step), x + 4, RULER / 2);
  }
  context.fillStyle = colors.line;
  context.fillRect(0, RULER - 1, GUTTER + width, 1);
}

function drawRange(context, width, height) {
  const range = timeline.drag?.range ?? filter.range;
  if (range) {
    const [left, right] = [Math.max(GUTTER, xOf(range[0])), Math.min(GUTTER + width, xOf(range[1]))];
    if (right >= GUTTER && left <= GUTTER + width) {
      context.fillStyle = colors.range;
      context.fillRect(left, 0, Math.max(1, right - left), height);
      context.fillStyle = colors.accent;
      context.fillRect(left, 0, 1, height);
      context.fillRect(right - 1, 0, 1, height);
    }
  }
  if (selected !== null) {
    const x = xOf(columns.time[selected]);
    if (x >= GUTTER && x <= GUTTER + width) {
      context.fillStyle = colors.text;
      context.fillRect(Math.round(x), RULER - 6, 1, height);
      context.beginPath();
      context.moveTo(x - 4, RULER - 6);
      context.lineTo(x + 5, RULER - 6);
      context.lineTo(x + 0.5, RULER);
      context.fill();
    }
  }
}

function drawTimeline() {
  if (!trace || byId('main').hidden) return;
  const scroll = byId('lanes-scroll');
  GUTTER = scroll.clientWidth < 600 ? 84 : 132;
  byId('lanes-room').style.height = `${roomHeight()}px`;
  const width = Math.floor(plotWidth());
  const [top, height] = [scroll.scrollTop, scroll.clientHeight];
  const context = prepare(byId('lanes'), scroll.clientWidth, height);
  timeline.rects = [];
  context.save();
  context.beginPath();
  context.rect(0, spanTop(), GUTTER + width, height);
  context.clip();
  drawSpans(context, width, top, height);
  drawLanes(context, width, top, height);
  context.restore();
  drawRuler(context, width);
  drawDensity(context, width);
  context.fillStyle = colors.line;
  context.fillRect(0, spanTop() - 1, GUTTER + width, 1);
  drawRange(context, width, height);
  drawOverview();
  const note = byId('timeline').dataset.density === 'shown' && trace.shown < trace.events ? ', density of the sample' : '';
  byId('view-text').textContent = `${duration(timeline.to - timeline.from)} in view, from ${tickText(timeline.from, Math.max(1, (timeline.to - timeline.from) / 100))}${note}`;
}

/** Draws the whole trace, the visible part and the range. */
function drawOverview() {
  const scroll = byId('lanes-scroll');
  const width = Math.floor(plotWidth());
  const height = 34;
  const context = prepare(byId('overview'), scroll.clientWidth, height);
  const counts = new Float64Array(width * STYLES.length);
  addBins(counts, width, (time) => (time / fullSpan()) * width);
  let most = 1;
  for (let x = 0; x < width; x += 1) {
    let all = 0;
    for (let style = 0; style < STYLES.length; style += 1) all += counts[x * STYLES.length + style];
    most = Math.max(most, all);
  }
  for (let x = 0; x < width; x += 1) {
    let y = height - 3;
    for (let style = 0; style < STYLES.length; style += 1) {
      const value = counts[x * STYLES.length + style];
      if (value === 0) continue;
      const size = Math.max(style >= 3 ? 3 : 1, (Math.log2(1 + value) / Math.log2(1 + most)) * (height - 8));
      context.fillStyle = colors[STYLES[style]];
      context.fillRect(GUTTER + x, Math.max(2, y - size), 1, size);
      y -= size * 0.5;
    }
  }
  const place = (time) => GUTTER + (time / fullSpan()) * width;
  if (filter.range) {
    context.fillStyle = colors.range;
    context.fillRect(place(filter.range[0]), 0, Math.max(2, place(filter.range[1]) - place(filter.range[0])), height);
  }
  context.strokeStyle = colors.accent;
  context.lineWidth = 1.5;
  const [left, right] = [place(timeline.from), place(timeline.to)];
  context.strokeRect(left + 0.75, 0.75, Math.max(3, right - left) - 1.5, height - 1.5);
  context.fillStyle = colors.muted;
  context.textAlign = 'left';
  context.fillText('Whole trace', 8, height / 2);
}

const redraw = perFrame(drawTimeline);

/** Sets the visible times, limited to the trace. */
function setView(from, to) {
  const least = 20;
  let size = Math.min(Math.max(to - from, least), fullSpan());
  if (!Number.isFinite(size)) size = fullSpan();
  timeline.from = Math.min(Math.max(0, from), Math.max(0, fullSpan() - size));
  timeline.to = timeline.from + size;
  redraw();
  saveSoon();
}

function zoom(factor, around = (timeline.from + timeline.to) / 2) {
  const size = Math.min(Math.max((timeline.to - timeline.from) * factor, 20), fullSpan());
  const share = (around - timeline.from) / (timeline.to - timeline.from);
  setView(around - size * share, around + size * (1 - share));
}

function pan(share) {
  const distance = (timeline.to - timeline.from) * share;
  setView(timeline.from + distance, timeline.to + distance);
}

const zoomAll = () => setView(0, fullSpan());

function zoomRange() {
  if (!filter.range) return;
  const margin = (filter.range[1] - filter.range[0]) * 0.02;
  setView(filter.range[0] - margin, filter.range[1] + margin);
}

function setRange(from, to) {
  filter.range = [Math.max(0, Math.floor(Math.min(from, to))), Math.min(fullSpan(), Math.ceil(Math.max(from, to)))];
  changed('push');
}

/** Scrolls the timeline to an event. */
function showInTimeline(event) {
  const time = columns.time[event];
  if (time < timeline.from || time > timeline.to) {
    const half = (timeline.to - timeline.from) / 2;
    setView(time - half, time + half);
  } else redraw();
}

/** Finds the span, event or lane at a position. */
function hit(x, y) {
  if (y > spanTop()) {
    for (const [left, top, right, bottom, span] of timeline.rects) {
      if (x >= left - 1 && x <= right + 1 && y >= top && y <= bottom) return { span };
    }
  }
  const lane = Math.floor((y + byId('lanes-scroll').scrollTop - lanesTop()) / LANE_HEIGHT);
  if (y <= spanTop() || lane < 0 || lane >= lanes.length) return {};
  if (x < GUTTER) return { lane };
  const column = timeline.lanes === 'cpu' ? columns.processor : columns.thread;
  const [time, reach] = [timeOf(x), ((timeline.to - timeline.from) / plotWidth()) * 4];
  let [low, high] = [0, matched.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (columns.time[matched[middle]] < time - reach) low = middle + 1;
    else high = middle;
  }
  let [nearest, distance, near] = [undefined, Infinity, 0];
  for (let at = low; at < matched.length && columns.time[matched[at]] <= time + reach; at += 1) {
    const event = matched[at];
    if (laneOf[column[event]] !== lane) continue;
    near += 1;
    const away = Math.abs(columns.time[event] - time) - kindStyles[columns.kind[event]] * reach * 0.05;
    if (away < distance) [nearest, distance] = [event, away];
  }
  return { lane, event: nearest, near };
}

function showTip(x, y, found) {
  const tip = byId('tip');
  const lines = [];
  if (found.span !== undefined) {
    const [from, to] = spanTimes(found.span);
    const event = spans.start[found.span];
    lines.push(kindOf(event).label, `${spans.stop[found.span] < 0 ? 'not stopped; ' : ''}${duration(to - from)} from ${since(from)} s`, kindOf(event).from.label, `activity ${activityShort(columns.activity[event])} ${activityText(columns.activity[event])}`);
  } else if (found.event !== undefined) {
    const kind = kindOf(found.event);
    lines.push(`${kind.label} · ${kind.level_name ?? levelOf(kind.level).name}`, `${since(columns.time[found.event])} s`, kind.from.label, `CPU ${columns.processor[found.event]}, process ${processText(processOf(found.event))}, thread ${threadText(columns.thread[found.event])}`);
    const one = detailsNow(found.event);
    if (one) lines.push(summaryText(one).slice(0, 200));
    if (found.near > 1) lines.push(`and ${plural(found.near - 1, 'event')} close by`);
  } else if (found.lane !== undefined && x < GUTTER) {
    lines.push(lanes[found.lane].label, plural(lanes[found.lane].events, 'event'), 'Click to show only these');
  }
  tip.hidden = lines.length === 0;
  if (lines.length === 0) return;
  tip.replaceChildren(...lines.map((line, at) => make(at === 0 ? 'strong' : 'span', {}, line)));
  const box = byId('timeline').getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, box.width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 34 + 16}px`;
}

function startTimeline() {
  const [canvas, box, scroll] = [byId('lanes'), byId('timeline'), byId('lanes-scroll')];
  kindStyles = Uint8Array.from(trace.kinds, (kind) => styleIndex(kind.level));
  [timeline.from, timeline.to] = [0, fullSpan()];
  readColors();
  findSpans();
  findLanes();
  const at = (event) => {
    const rect = canvas.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  scroll.style.height = `${Math.min(Math.max(roomHeight() + 2, 150), 340)}px`;
  box.dataset.spans = spans.start.length;
  box.dataset.lanes = lanes.length;
  canvas.addEventListener('wheel', (event) => {
    const [x] = at(event);
    if (event.ctrlKey || event.altKey || (Math.abs(event.deltaX) < Math.abs(event.deltaY) && !event.shiftKey)) {
      event.preventDefault();
      zoom(1.0015 ** Math.max(-600, Math.min(600, event.deltaY)), Math.max(timeline.from, timeOf(x)));
    } else {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / 800);
    }
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button > 1) return;
    const [x, y] = at(event);
    canvas.setPointerCapture(event.pointerId);
    timeline.drag = { x, y, from: timeline.from, to: timeline.to, moved: false, pans: event.shiftKey || event.button === 1 };
    box.focus({ preventScroll: true });
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = at(event);
    const { drag } = timeline;
    if (!drag) {
      showTip(x, y, hit(x, y));
      return;
    }
    if (Math.abs(x - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    byId('tip').hidden = true;
    if (drag.pans) {
      const distance = ((drag.x - x) / plotWidth()) * (drag.to - drag.from);
      setView(drag.from + distance, drag.to + distance);
    } else if (drag.x >= GUTTER) {
      drag.range = [timeOf(drag.x), timeOf(Math.max(GUTTER, x))].sort((a, b) => a - b);
      redraw();
    }
  });
  canvas.addEventListener('pointerup', (event) => {
    const { drag } = timeline;
    timeline.drag = null;
    if (!drag) return;
    if (drag.range) setRange(...drag.range);
    else if (!drag.moved) clickTimeline(hit(...at(event)));
  });
  canvas.addEventListener('pointercancel', () => {
    timeline.drag = null;
    redraw();
  });
  canvas.addEventListener('pointerleave', () => {
    byId('tip').hidden = true;
  });
  scroll.addEventListener('scroll', redraw);
  const overview = byId('overview');
  let grip = null;
  const move = (event) => {
    const rect = overview.getBoundingClientRect();
    const time = ((event.clientX - rect.left - GUTTER) / plotWidth()) * fullSpan();
    if (grip.time === undefined) grip.time = time;
    if (Math.abs(event.clientX - grip.x) > 4) setView(Math.min(grip.time, time), Math.max(grip.time, time));
    else {
      const half = grip.size / 2;
      setView(time - half, time + half);
    }
  };
  overview.addEventListener('pointerdown', (event) => {
    overview.setPointerCapture(event.pointerId);
    grip = { x: event.clientX, size: timeline.to - timeline.from };
    move(event);
  });
  overview.addEventListener('pointermove', (event) => grip && move(event));
  overview.addEventListener('pointerup', () => {
    grip = null;
  });
  byId('zoom-in').addEventListener('click', () => zoom(0.5));
  byId('zoom-out').addEventListener('click', () => zoom(2));
  byId('pan-left').addEventListener('click', () => pan(-0.25));
  byId('pan-right').addEventListener('click', () => pan(0.25));
  byId('zoom-all').addEventListener('click', zoomAll);
  byId('zoom-range').addEventListener('click', zoomRange);
  for (const input of document.querySelectorAll('input[name=lanes]')) {
    input.addEventListener('change', () => setLanes(input.value));
  }
  box.addEventListener('keydown', timelineKey);
  byId('legend').append(...['critical', 'error', 'warning', 'info', 'verbose', 'other'].map((style) => make('span', {}, make('i', { class: style }), { critical: 'Critical', error: 'Error', warning: 'Warning', info: 'Information', verbose: 'Verbose', other: 'other' }[style])));
  new ResizeObserver(redraw).observe(scroll);
}

function setLanes(which) {
  timeline.lanes = which === 'thread' ? 'thread' : 'cpu';
  for (const input of document.querySelectorAll('input[name=lanes]')) input.checked = input.value === timeline.lanes;
  findLanes();
  byId('timeline').dataset.lanes = lanes.length;
  byId('lanes-scroll').style.height = `${Math.min(Math.max(roomHeight() + 2, 150), 340)}px`;
  redraw();
  saveSoon();
}

function clickTimeline(found) {
  if (found.span !== undefined) openEvent(spans.start[found.span]);
  else if (found.event !== undefined) openEvent(found.event);
  else if (found.lane !== undefined) toggleFilter(lanes[found.lane].facet, lanes[found.lane].value, true);
  else if (filter.range) {
    filter.range = null;
    changed('push');
  }
}

function timelineKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const acts = {
    w: () => zoom(0.5), '+': () => zoom(0.5), '=': () => zoom(0.5), s: () => zoom(2), '-': () => zoom(2),
    a: () => pan(-0.25), ArrowLeft: () => pan(-0.1), d: () => pan(0.25), ArrowRight: () => pan(0.1),
    0: zoomAll, z: zoomRange, r: () => setRange(timeline.from, timeline.to),
    ArrowUp: () => byId('lanes-scroll').scrollBy(0, -LANE_HEIGHT), ArrowDown: () => byId('lanes-scroll').scrollBy(0, LANE_HEIGHT),
  };
  const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) {
    event.preventDefault();
    act();
  } else if (event.key === 'Escape' && filter.range) {
    event.stopPropagation();
    filter.range = null;
    changed('push');
  }
}
