// A film of warps: draws the step at the chosen time, for one run or two side by side. The data are made by films.py.
const COLOUR = { good: 'var(--good)', fair: 'var(--fair)', bad: 'var(--bad)', wait: 'var(--wait)', idle: 'var(--idle)' };

// A frame, unpacked: [operation, mask, first address and differences, values].
function unpack(side, packed) {
  const [number, mask, deltas, values] = packed;
  const frame = { ...side.operations[number], mask: mask >>> 0, lanes: lanesIn(mask), values: values === undefined ? '' : side.values[values] };
  let address = 0;
  frame.addresses = (deltas === undefined ? [] : side.addresses[deltas]).map((delta) => (address += delta));
  [frame.cost, frame.ideal] = packed.slice(4);
  return frame;
}
const isRequest = (frame) => frame.cost !== undefined;
const unitOf = (frame) => (frame.space === 'shared' ? 'wavefront' : 'sector');
function rank(frame) {
  if (!isRequest(frame)) return frame.what.includes('barrier') || frame.what === 'warp operation' ? 'wait' : 'idle';
  const share = frame.cost ? frame.ideal / frame.cost : 1;
  return share > 0.99 ? 'good' : share > 0.4 ? 'fair' : 'bad';
}

// ---------------------------------------------------------------------------------------------------------------------
// Words: for the status line, tooltips and screen readers

function lanesText(frame) {
  const n = frame.lanes.length;
  if (n === LANES) return 'All 32 lanes';
  const runs = [];
  for (const lane of frame.lanes) {
    const last = runs[runs.length - 1];
    if (last && last[1] === lane - 1) last[1] = lane;
    else runs.push([lane, lane]);
  }
  const shown = runs.slice(0, 4).map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(', ') + (runs.length > 4 ? ', …' : '');
  return `${count(n, 'lane')} (${shown})`;
}
const VERBS = { load: ['load', 'loads', 'from'], store: ['store', 'stores', 'to'], atomic: ['atomically update', 'atomically updates', 'in'] };
function told(frame) {
  const who = lanesText(frame);
  const s = frame.lanes.length === 1 ? 's' : '';
  if (frame.what === 'block barrier') return `${who} wait${s} at the block's barrier.`;
  if (frame.what === 'warp operation') return `${who} exchange${s} values or wait for each other.`;
  if (frame.what === 'step') return `${who} execute${s} this line.`;
  const cost = `${count(frame.cost, unitOf(frame))}${frame.cost > frame.ideal ? `, ${frame.ideal} at best` : ''}`;
  if (frame.what === 'tile') return `TMA: a ${frame.kind} of ${frame.size.toLocaleString('en')} bytes: ${cost}.`;
  const [many, one, from] = VERBS[frame.kind];
  return `${who} ${s ? one : many} ${count(frame.size, 'byte')}${s ? '' : ' each'} ${from} ${frame.region}: ${cost}.`;
}

const bytesOf = (hex) => new DataView(Uint8Array.from(hex.match(/../g) || [], (b) => parseInt(b, 16)).buffer);
function half(bits, bfloat) {
  const view = new DataView(new ArrayBuffer(4));
  if (bfloat) { view.setUint32(0, bits << 16); return view.getFloat32(0); }
  const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
const READERS = {
  float32: [4, (v, i) => v.getFloat32(i, true)], float64: [8, (v, i) => v.getFloat64(i, true)],
  float16: [2, (v, i) => half(v.getUint16(i, true), false)], bfloat16: [2, (v, i) => half(v.getUint16(i, true), true)],
  int64: [8, (v, i) => v.getBigInt64(i, true)], int32: [4, (v, i) => v.getInt32(i, true)],
  int16: [2, (v, i) => v.getInt16(i, true)], int8: [1, (v, i) => v.getInt8(i)], uint8: [1, (v, i) => v.getUint8(i)],
  bool: [1, (v, i) => v.getUint8(i) !== 0],
};
const number = (x) => (typeof x === 'number' && !Number.isInteger(x) ? String(+x.toPrecision(6)) : String(x));
function valueText(frame, index) {
  const hex = frame.values.slice(index * frame.size * 2, (index + 1) * frame.size * 2);
  if (!hex) return '';
  const view = bytesOf(hex), type = (frame.region.match(/ (\w+)\)$/) || [])[1];
  const read = ([size, of]) => Array.from({ length: frame.size / size }, (_, i) => number(of(view, i * size))).join(', ');
  if (READERS[type] && frame.size >= READERS[type][0]) return read(READERS[type]);
  if (frame.size % 4) return frame.size === 2 ? `${read(READERS.float16)} as float16, ${read(READERS.int16)} as int16` : read(READERS.uint8);
  return `${read(READERS.float32)} as float32, ${read(READERS.int32)} as int32`;
}
function placeText(frame, index) {
  const offset = frame.addresses[index] - frame.start, type = (frame.region.match(/ (\w+)\)$/) || [])[1];
  if (READERS[type]) return `element ${Math.floor(offset / READERS[type][0])} of ${frame.region}`;
  const bank = frame.space === 'shared' ? `, bank ${Math.floor(frame.addresses[index] / WORD) % BANKS}` : '';
  return `byte ${offset} of ${frame.region}${bank}`;
}
function laneText(warp, frame, lane) {
  const thread = warp.warp * LANES + lane, [x, y] = warp.threads;
  const lines = [`lane ${lane}, thread (${thread % x}, ${Math.floor(thread / x) % y}, ${Math.floor(thread / (x * y))})`];
  const index = frame.lanes.indexOf(lane);
  if ((faulty >>> lane) & 1) lines.push('has the fault');
  if (index < 0) lines.push('takes no part');
  else if (frame.addresses.length) {
    lines.push(placeText(frame, index));
    const value = (faulty >>> lane) & 1 ? '' : valueText(frame, index);
    if (value) lines.push(`${frame.kind === 'atomic' ? 'then holds' : frame.kind + 's'} ${value}`);
  }
  return lines.join('\n');
}

// ---------------------------------------------------------------------------------------------------------------------
// One run: its source, its lanes and what they touch

class Side {
  constructor(data, onChange) {
    this.data = data;
    this.said = node('p', { className: 'said' });
    this.said.setAttribute('aria-live', 'polite');
    this.svg = shape('svg', { viewBox: `0 0 ${WIDTH} 130`, role: 'img', 'aria-label': 'the lanes of the warp and the memory that they touch' });
    this.touched = shape('g', {});
    this.lanes = laneBoxes();
    this.svg.append(shape('text', { x: 0, y: 8, class: 'soft' }, 'lanes'), ...this.lanes.flat(), this.touched);
    this.chooser = node('select', { onchange: () => { this.choose(+this.chooser.value); onChange(); } });
    this.chooser.setAttribute('aria-label', `warp of ${data.title}`);
    data.warps.forEach((warp, i) => this.chooser.append(node('option', { value: i, textContent: warp.name })));
    this.rows = new Map();
    const table = node('table');
    for (const [file, first, lines] of data.sources) {
      if (table.rows.length) table.append(node('tr', {}, node('td', { textContent: '⋯' }), node('td')));
      lines.forEach((text, i) => {
        const line = first + i, key = `${file}:${line}`;
        const row = node('tr', { className: data.faults[key] ? 'fault' : '', title: data.faults[key] || '' },
          node('td', { textContent: line }), node('td', { textContent: text }));
        this.rows.set(key, row);
        table.append(row);
      });
    }
    this.code = node('div', { className: 'code', tabIndex: 0 }, table);
    this.code.setAttribute('role', 'region');
    this.code.setAttribute('aria-label', `source of ${data.title}`);
    this.canvas = node('canvas', { width: 1320, height: 88 });
    this.canvas.setAttribute('role', 'img');
    this.cursor = node('i', { className: 'cursor' });
    this.strip = node('div', { className: 'strip' }, this.canvas, this.cursor);
    this.root = node('section', { className: 'side' },
      node('div', { className: 'head' }, node('h2', { textContent: data.title }), this.chooser), this.code, this.said, this.svg);
    this.choose(data.start);
  }

  choose(number) {
    this.chooser.value = number;
    this.warp = this.data.warps[number];
    this.frames = this.warp.frames.map((packed) => unpack(this.data, packed));
    this.spent = [];  // the cost so far, in sectors and in wavefronts
    const sum = { sector: 0, wavefront: 0 };
    for (const frame of this.frames) {
      if (isRequest(frame)) sum[unitOf(frame)] += frame.cost;
      this.spent.push({ ...sum });
    }
    const costs = this.frames.filter(isRequest);
    this.svg.setAttribute('viewBox', `0 0 ${WIDTH} ${Math.max(130, ...costs.map(heightOf))}`);
    this.dearest = Math.max(0, ...costs.map((frame) => frame.cost));
    this.canvas.setAttribute('aria-label', `all ${this.frames.length} steps over time: ${costs.length} requests, ` +
      `${costs.filter((f) => rank(f) !== 'good').length} of them cost more than necessary`);
    this.drawn = false;
  }

  draw(time) {
    const at = Math.min(time, this.frames.length - 1), frame = this.frames[at];
    const { sector, wavefront } = this.spent[at];
    const sum = [sector && count(sector, 'sector'), wavefront && count(wavefront, 'wavefront')].filter(Boolean).join(', ');
    const word = node('b', { className: rank(frame), textContent: `line ${frame.line}` });
    const key = `${frame.file}:${frame.line}`, total = this.data.totals[key], fault = this.data.faults[key];
    const more = [sum && `This warp so far: ${sum}.`, total && `Line ${frame.line} in all traced blocks: ${total}.`, fault && `Fault: ${fault}`];
    this.said.replaceChildren(word, ` ${told(frame)}`, ...more.filter(Boolean).map((textContent) => node('small', { textContent })));
    const row = this.rows.get(key);
    if (row !== this.row) {
      this.row?.classList.remove('now');
      row?.classList.add('now');
      this.row = row;
      if (row) {
        this.places ??= new Map([...this.rows.values()].map((each) => [each, each.offsetTop]));  // read once: it costs a layout
        this.height ??= this.code.clientHeight;
        const top = this.places.get(row), { scrolled = 0 } = this;
        if (top < scrolled || top > scrolled + this.height - 24) this.code.scrollTop = this.scrolled = Math.max(0, top - this.height / 3);
      }
    }
    faulty = this.faultyAt(at);
    const lit = (frame.mask | faulty) >>> 0;
    if (lit !== this.lit || faulty !== this.red) lightLanes(this.lanes, lit);
    [this.frame, this.lit, this.red] = [frame, lit, faulty];
    const parts = document.createDocumentFragment();
    if (frame.what === 'block barrier' || frame.what === 'warp operation') {
      parts.append(shape('rect', { x: 0, y: 52, width: WIDTH, height: 6, fill: 'var(--wait)' }));
      for (const lane of frame.lanes) parts.append(shape('line', { x1: (lane + 0.5) * LANE, x2: (lane + 0.5) * LANE, y1: 30, y2: 52, stroke: hue(lane) }));
      parts.append(shape('text', { x: 0, y: 72, class: 'soft' }, frame.what === 'block barrier' ? 'barrier: no thread of the block goes on until all have arrived' : 'operation of the warp'));
    } else if (frame.addresses.length) (frame.space === 'shared' ? drawBanks : drawSectors)(parts, frame);
    this.touched.replaceChildren(parts);
    this.drawStrip(at);
  }

  // The film opens at the fault of the warp: there, and only there, the lanes that have it are red.
  faultyAt(at) {
    return at === this.warp.at ? this.warp.faulty : 0;
  }

  // The strip of all frames is drawn once; then only the cursor moves, which costs no redraw.
  drawStrip(at) {
    const n = this.frames.length;
    this.cursor.style.transform = `translateX(${(100 * (at + 0.5)) / n}%)`;
    if (this.drawn) return;
    this.drawn = true;
    const strip = this.canvas.getContext('2d'), { width, height } = this.canvas;
    const probe = document.body.appendChild(node('span')), colours = {};
    for (const key in COLOUR) { probe.style.color = COLOUR[key]; colours[key] = getComputedStyle(probe).color; }
    probe.remove();
    strip.globalAlpha = 1;
    strip.clearRect(0, 0, width, height);
    this.frames.forEach((frame, i) => {
      const x = (width * i) / n, w = Math.max(width / n - (n < 400 ? 0.6 : 0), 0.7), kind = rank(frame);
      const h = kind === 'idle' ? 8 : kind === 'wait' ? height : 14 + ((height - 14) * frame.cost) / this.most();
      strip.globalAlpha = frame.lanes.length === LANES ? 1 : 0.45 + (0.3 * frame.lanes.length) / LANES;
      strip.fillStyle = colours[kind];
      strip.fillRect(x, height - h, w, h);
    });
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Time, for all sides at once

class Film {
  constructor(data) {
    const $ = (id) => document.getElementById(id);
    this.time = $('time');
    this.sides = data.sides.map((side) => new Side(side, () => this.restart()));
    const most = () => Math.max(1, ...this.sides.map((side) => side.dearest));  // one scale, so that strips compare
    for (const side of this.sides) side.most = most;
    $('sides').append(...this.sides.map((side) => side.root));
    $('notes').append(...data.notes.map((text) => node('p', { className: 'note', textContent: text })));
    $('strips').append(...this.sides.map((side) => side.strip));
    this.clock = $('clock');
    this.playButton = $('play');
    this.speed = $('speed');
    this.time.oninput = () => this.go(+this.time.value);
    $('first').onclick = () => this.go(0);
    $('last').onclick = () => this.go(this.length - 1);
    $('back').onclick = () => this.go(this.at - 1);
    $('next').onclick = () => this.go(this.at + 1);
    this.playButton.onclick = () => this.play(!this.timer);
    for (const side of this.sides) {
      const scrub = (event) => {
        if (!(event.buttons & 1)) return;
        const box = side.canvas.getBoundingClientRect();
        this.go(Math.floor(((event.clientX - box.left) / box.width) * side.frames.length));
      };
      side.canvas.onpointerdown = (event) => { side.canvas.setPointerCapture(event.pointerId); scrub(event); };
      side.canvas.onpointermove = scrub;
      this.hover(side, $('tip'));
    }
    document.addEventListener('keydown', (event) => this.key(event));
    followTheme(() => { for (const side of this.sides) side.drawn = false; if (this.length) this.go(this.at); });
    this.restart(data.at);
    fillFrame();
  }

  restart(at = 0) {
    for (const side of this.sides) side.drawn = false;
    this.length = Math.max(...this.sides.map((side) => side.frames.length));
    this.time.max = this.length - 1;
    this.go(at);
  }

  go(time) {
    this.at = Math.max(0, Math.min(this.length - 1, time));
    this.time.value = this.at;
    this.clock.textContent = `step ${this.at + 1} of ${this.length}`;
    this.time.setAttribute('aria-valuetext', `${this.clock.textContent}: ${this.sides.map((s) => told(s.frames[Math.min(this.at, s.frames.length - 1)])).join(' ')}`);
    for (const side of this.sides) side.draw(this.at);
    if (this.timer && this.at === this.length - 1) this.play(false);
  }

  play(on) {
    clearTimeout(this.timer);
    this.timer = null;
    this.playButton.textContent = on ? 'pause' : '▶ play';
    this.playButton.setAttribute('aria-label', on ? 'pause' : 'play');
    for (const side of this.sides) side.said.setAttribute('aria-live', on ? 'off' : 'polite');
    if (!on) return;
    if (this.at === this.length - 1) this.go(0);
    const tick = () => {
      this.timer = setTimeout(tick, 1000 / +this.speed.value);
      this.go(this.at + 1);
    };
    this.timer = setTimeout(tick, 1000 / +this.speed.value);
  }

  key(event) {
    const element = event.target, named = element.tagName;
    if (named === 'SELECT' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (element.classList?.contains('code') && event.key.startsWith('Arrow')) return;  // scrolls the source
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
    if (event.key === ' ' && named !== 'BUTTON') this.play(!this.timer);
    else if (event.key === 'Home') this.go(0);
    else if (event.key === 'End') this.go(this.length - 1);
    else if (event.key in steps) this.go(this.at + steps[event.key]);
    else return;
    event.preventDefault();
  }

  hover(side, tip) {
    side.svg.addEventListener('pointermove', (event) => {
      const lane = event.target.dataset?.lane;
      tip.hidden = lane === undefined;
      if (tip.hidden) return;
      tip.textContent = laneText(side.warp, side.frame, +lane);
      tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
      tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
    });
    side.svg.addEventListener('pointerleave', () => { tip.hidden = true; });
  }
}

if (typeof document !== 'undefined') unpacked().then((data) => { window.film = new Film(data); });
