// Where the bytes go: one rung of the matmul ladder at a time, as nested tiles. The numbers are made by climb.py.

const ALONG = { rows: 'row_step', columns: 'column_step' };
const title = (rung) => rung.file.replace(/^.*\/|\.cu$/g, '').replace(/^(\d+)_/, '$1 ').replaceAll('_', ' ');
const short = (x) => x.toLocaleString('en', { maximumSignificantDigits: 3 });

// Lane's spans of rows or columns, in its warp's tile: [first, how many].
function spansOf({ lanes }, lane, along) {
  const at = along === 'rows' ? Math.floor(lane / lanes.across) : lane % lanes.across;
  return lanes[along].map(([first, length]) => [first + at * lanes[ALONG[along]], length]);
}
const total = (spans) => spans.reduce((sum, [, length]) => sum + length, 0);

// A rectangle for each pair of spans.
function rectangles(rows, columns) {
  return rows.flatMap(([y, height]) => columns.map(([x, width]) => ({ x, y, width, height })));
}

// In words: what a block copies, and what a warp or lane computes.
function blockTold({ block: [m, n, k], size, blocks_sharing_b: sharing, from_global: bytes, warp, lanes, instruction }) {
  const inside = warp[0] === instruction[0] ? 'Purple: a warp group.' : `Purple: a warp; red: ${lanes ? 'a lane' : 'one instruction'}.`;
  if (!k) return `There are no tiles. For each element along k, a warp of ${warp[0]} x ${warp[1]} elements requests ${short((64 * bytes) / SECTOR)} sectors for its 64 FLOPs. ${inside}`;
  const copied = size * k * (m + n / sharing), shared = sharing > 1 ? ` Of b, ${sharing} blocks load a half each, for both.` : '';
  return `${m} x ${n} elements of c. For each ${k} along k the block copies ${copied.toLocaleString('en')} bytes to shared memory, for ${(2 * m * n * k).toLocaleString('en')} FLOPs.${shared} ${inside}`;
}
function warpTold(rung) {
  const { lanes, instruction: [m, n, k], warp } = rung;
  if (!lanes) return m === warp[0] && n === warp[1] ? `One instruction of four warps multiplies ${m} x ${k} by ${k} x ${n}, straight from shared memory.`
    : `${warp[0]} x ${warp[1]} elements of c. One instruction multiplies ${m} x ${k} by ${k} x ${n}, from registers.`;
  const rows = total(lanes.rows), columns = total(lanes.columns), from = rung.block[2] ? 'shared' : 'global';
  const wide = lanes.row_step === 4 ? ', four at a time' : '';
  return `Each colour is a lane; lane 0 is outlined. It computes ${rows} x ${columns}: for each element along k it reads ${rows} of a and ${columns} of b from ${from} memory${wide}, for ${count(rows * columns, 'multiplication')}.`;
}
const told = (rung) => `${rung.adds} ${rung.tflops ? `Recorded: ${short(rung.tflops)} TFLOP/s, ${Math.round(100 * rung.of_cublas)}% of cuBLAS.` : 'Not measured yet.'}`;

class Climb {
  constructor(data) {
    this.$ = (id) => document.getElementById(id);
    this.data = data;
    const { $ } = this;
    $('rung').max = data.rungs.length - 1;
    $('rung').oninput = () => this.go(+$('rung').value);
    $('down').onclick = () => this.go(this.at - 1);
    $('up').onclick = () => this.go(this.at + 1);
    $('notes').textContent = `Loads only: whole sectors from global memory (L2 or DRAM serve them), whole wavefronts of shared memory, as the X-ray counts them; of wgmma, the factors that it reads. Registers: what multiplications read and write. Speed: ${data.machine}, m = n = k = ${data.size.toLocaleString('en')}; a dot above the slope is served by caches.`;
    this.go(0);
    followTheme(() => {});
    fillFrame();
  }

  go(at) {
    const { $, data } = this;
    this.at = Math.max(0, Math.min(data.rungs.length - 1, at));
    const rung = data.rungs[this.at];
    $('rung').value = this.at;
    $('rung').setAttribute('aria-valuetext', `${title(rung)}, rung ${this.at + 1} of ${data.rungs.length}`);
    $('down').disabled = this.at === 0;
    $('up').disabled = this.at === data.rungs.length - 1;
    $('said').replaceChildren(node('b', { textContent: title(rung) }), ` (${rung.dtype}). ${told(rung)}`);
    $('block_said').textContent = blockTold(rung);
    $('warp_title').textContent = rung.instruction[0] && rung.warp[0] === rung.instruction[0] ? 'one warp group of it' : 'one warp of it';
    $('warp_said').textContent = warpTold(rung);
    this.drawBlock(rung);
    this.drawWarp(rung);
    this.drawRoof(rung);
    this.count(rung);
  }

  // All rungs to one scale: an element is a unit.
  drawBlock(rung) {
    const [m, n, k] = rung.block, parts = [], edge = { 'vector-effect': 'non-scaling-stroke' };
    const text = (x, y, words) => parts.push(shape('text', { x, y }, words));
    if (k) {
      const own = n / rung.blocks_sharing_b;  // columns of b that the block loads itself
      parts.push(shape('rect', { x: -6 - k, y: 0, width: k, height: m, class: 'of_a' }), shape('rect', { x: 0, y: -6 - k, width: own, height: k, class: 'of_b' }));
      if (own < n) parts.push(shape('rect', { x: own, y: -6 - k, width: n - own, height: k, class: 'other' }), shape('rect', { x: 0, y: m, width: n, height: m, class: 'other' }));
      text(-6 - k, m + 14, `a: ${m} x ${k}`);
      if (n > 200) text(0, -12 - k, `b: ${k} x ${n}`);
      else text(n + 5, -10, `b: ${k} x ${n}`);
    } else {
      text(-70, m / 2 + 4, 'rows of a');
      text(0, -8, 'columns of b');
    }
    parts.push(shape('rect', { x: 0, y: 0, width: n, height: m, class: 'of_c', ...edge }));
    const warps = rung.lanes ? this.ofWarp(rung) : [{ x: 0, y: 0, width: rung.warp[1], height: rung.warp[0] }];
    for (const box of warps) parts.push(shape('rect', { ...box, class: 'of_warp' }));
    const lane = rung.lanes ? rectangles(spansOf(rung, 0, 'rows'), spansOf(rung, 0, 'columns')) : [{ x: 0, y: 0, width: rung.instruction[1], height: rung.instruction[0] }];
    if (rung.lanes || rung.instruction[1] < rung.warp[1]) for (const box of lane) parts.push(shape('rect', { ...box, class: 'of_lane' }));
    text(n > 200 ? 4 : n + 5, n > 200 ? m - 6 : 14, `c: ${m} x ${n}`);
    this.$('block').replaceChildren(...parts);
  }

  ofWarp(rung) {
    const lanes = [...Array(LANES).keys()];
    const every = (along) => [...new Map(lanes.flatMap((lane) => spansOf(rung, lane, along)).map((span) => [span[0], span])).values()];
    return rectangles(every('rows'), every('columns'));
  }

  // Enlarged: the lanes of a warp in their colours, or the instructions of tensor cores.
  drawWarp(rung) {
    const [rows, columns] = rung.warp, scale = Math.min(352 / columns, 352 / rows, 11), parts = [];
    const box = ({ x, y, width, height }, more) => parts.push(shape('rect', { x: x * scale, y: y * scale, width: width * scale, height: height * scale, ...more }));
    box({ x: 0, y: 0, width: columns, height: rows }, { class: 'of_c' });
    if (rung.lanes) {
      for (let lane = LANES - 1; lane >= 0; lane--)
        for (const each of rectangles(spansOf(rung, lane, 'rows'), spansOf(rung, lane, 'columns')))
          box(each, { fill: hue(lane), ...(lane ? { stroke: 'var(--page)', 'stroke-width': Math.min(0.5, scale / 8) } : { class: 'lane_0', stroke: 'var(--ink)', 'stroke-width': 1.5 }) });
    } else {
      const [m, n] = rung.instruction;
      for (let y = 0; y < rows; y += m) for (let x = 0; x < columns; x += n) box({ x, y, width: n, height: m }, { class: 'of_warp', stroke: 'var(--page)' });
      box({ x: 0, y: 0, width: n, height: m }, { class: 'edge' });
    }
    this.$('warp').setAttribute('viewBox', `-2 -2 356 ${Math.max(rows * scale, 60) + 4}`);
    this.$('warp').replaceChildren(...parts);
  }

  drawRoof(now) {
    const { data, $ } = this, parts = [], shown = data.rungs.filter((rung) => rung.tflops);
    const x = (intensity) => 36 + (312 * Math.log10(intensity / 0.02)) / Math.log10(1000 / 0.02);
    const y = (tflops) => 316 - (300 * Math.log10(tflops / 0.1)) / Math.log10(2000 / 0.1);
    for (const at of [0.1, 1, 10, 100, 1000]) {
      if (at < 1000) parts.push(shape('line', { x1: x(at), x2: x(at), y1: 16, y2: 316, class: 'grid' }), shape('text', { x: x(at), y: 330, 'text-anchor': 'middle', class: 'small soft' }, at));
      parts.push(shape('line', { x1: 36, x2: 348, y1: y(at), y2: y(at), class: 'grid' }), shape('text', { x: 32, y: y(at) + 4, 'text-anchor': 'end', class: 'small soft' }, at));
    }
    const peak = data.peaks[now.peak], corner = peak && peak / data.bandwidth;
    if (peak) {
      parts.push(shape('polyline', { points: `${x(0.1 / data.bandwidth)},${y(0.1)} ${x(corner)},${y(peak)} 348,${y(peak)}`, class: 'roof' }),
        shape('text', { x: 346, y: y(peak) - 5, 'text-anchor': 'end', class: 'small' }, `${now.peak}: ${peak} TFLOP/s`));
    }
    parts.push(shape('polyline', { points: shown.map((rung) => `${x(1 / rung.from_global)},${y(rung.tflops)}`).join(' '), class: 'path' }));
    for (const rung of [...shown.filter((each) => each !== now), ...shown.filter((each) => each === now)])
      parts.push(shape('circle', { cx: x(1 / rung.from_global), cy: y(rung.tflops), r: rung === now ? 7 : 4, class: rung === now ? 'dot now' : 'dot' }));
    if (now.tflops) parts.push(shape('text', { x: x(1 / now.from_global) + 11, y: y(now.tflops) + 4 }, short(now.tflops)));
    parts.push(shape('text', { x: 192, y: 348, 'text-anchor': 'middle', class: 'small' }, 'FLOP per byte loaded from global memory'), shape('text', { x: 4, y: 10, class: 'small' }, 'TFLOP/s'));
    $('roof').replaceChildren(...parts);
    const roof = peak && Math.min(peak, data.bandwidth / now.from_global);
    const limit = roof < peak ? `A copy's ${short(data.bandwidth)} TB/s would allow ${short(roof)} TFLOP/s` : `The peak is ${short(peak)} TFLOP/s`;
    const reached = now.tflops ? `; it reaches ${short(now.tflops)}${now.tflops > roof ? ', because caches serve most loads' : ''}` : '';
    $('roof_said').textContent = `${short(1 / now.from_global)} FLOP per byte. ${peak ? `${limit}${reached}.` : ''}`;
  }

  count(rung) {
    const before = this.data.rungs[this.at - 1], width = (bytes) => Math.max(0, (100 * Math.log10(bytes / 0.0005)) / Math.log10(32 / 0.0005));
    const rows = [['from global memory: L2 or DRAM', 'from_global'], ['of these from DRAM, at least', 'least'], ['from shared memory', 'from_shared'], ['registers', 'registers']];
    this.$('counters').tBodies[0].replaceChildren(...rows.map(([words, key]) => node('tr', {},
      Object.assign(node('th', { textContent: words }), { scope: 'row' }),
      node('td', { textContent: short(rung[key]) }), node('td', { textContent: before ? short(before[key]) : '' }),
      node('td', { className: 'bar' }, ...(rung[key] ? [Object.assign(node('i'), { style: `width:${width(rung[key])}%` })] : [])))));
  }
}

if (typeof document !== 'undefined') unpacked().then((data) => { window.climb = new Climb(data); });
