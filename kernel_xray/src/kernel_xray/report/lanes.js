// The lanes of a warp and what one request of them touches: { lanes, addresses, size }, an address for each lane.

const LANES = 32, SECTOR = 32, WORD = 4, BANKS = 32, WIDTH = 660, LANE = WIDTH / LANES;
let faulty = 0;  // lanes that are drawn in red: a bit for each
// All lanes of one lightness, so that each line and each number on its lane is seen on either page.
const hue = (lane) => ((faulty >>> lane) & 1 ? 'var(--bad)'
  : `light-dark(oklch(0.52 0.14 ${290 - lane * 8}), oklch(0.76 0.13 ${290 - lane * 8}))`);
const lanesIn = (mask) => [...Array(LANES).keys()].filter((lane) => (mask >>> lane) & 1);
const rowHeight = (rows) => (rows > 8 ? 2.6 : 10);

// The sectors that a request touches, in order.
function sectorsOf({ addresses, size }) {
  const touched = new Set();
  for (const a of addresses) for (let s = Math.floor(a / SECTOR); s <= Math.floor((a + size - 1) / SECTOR); s++) touched.add(s);
  return [...touched].sort((a, b) => a - b);
}

// The wavefronts of a request to shared memory. Each is a Map from bank to [word, the lanes that get it], and names the
// group of lanes that it serves: all 32 for up to 4 bytes, 16 for 8, 8 for 16. Two neighbouring groups are served as one
// if each of their lanes has the address of its neighbour: the next lane, or the next but one.
function wavefrontsOf({ lanes, addresses, size }) {
  const at = new Map(lanes.map((lane, i) => [lane, addresses[i]])), together = size <= WORD ? LANES : (LANES * WORD) / size;
  const paired = (first, end, flip) => lanes.every((lane) => lane < first || lane >= end || at.get(lane ^ flip) === at.get(lane));
  const wavefronts = [];
  for (let first = 0, end; first < LANES; first = end) {
    const twice = first + 2 * together;
    end = twice <= LANES && first % (2 * together) === 0 && (paired(first, twice, 1) || paired(first, twice, 2)) ? twice : first + together;
    const banks = Array.from({ length: BANKS }, () => new Map());
    for (const [lane, a] of at)
      if (lane >= first && lane < end)
        for (let w = Math.floor(a / WORD); w <= Math.floor((a + size - 1) / WORD); w++) {
          const words = banks[w % BANKS];
          if (words.has(w)) words.get(w).push(lane);
          else words.set(w, [lane]);
        }
    const lists = banks.map((words) => [...words]);
    for (let turn = 0; turn < Math.max(...lists.map((words) => words.length)); turn++) {
      const served = new Map(lists.flatMap((words, bank) => (turn < words.length ? [[bank, words[turn]]] : [])));
      wavefronts.push({ first, served });
    }
  }
  return wavefronts;
}

// ---------------------------------------------------------------------------------------------------------------------
// Drawing: 32 lanes above, sectors or banks below

function laneBoxes() {
  return Array.from({ length: LANES }, (_, lane) => [
    shape('rect', { x: lane * LANE + 1, y: 12, width: LANE - 2, height: 18, rx: 2, 'data-lane': lane }),
    shape('text', { x: (lane + 0.5) * LANE, y: 21, 'text-anchor': 'middle', 'dominant-baseline': 'central', 'pointer-events': 'none', 'data-odd': lane % 2 }, lane),
  ]);
}
function lightLanes(boxes, mask) {
  boxes.forEach(([box, label], lane) => {
    const on = (mask >>> lane) & 1;
    box.setAttribute('fill', on ? hue(lane) : 'transparent');
    box.setAttribute('stroke', on ? 'none' : 'var(--pale)');
    label.setAttribute('class', on ? 'lit' : 'idle');
  });
}

function drawRay(parts, lane, x, y) {
  parts.append(shape('line', { x1: (lane + 0.5) * LANE, y1: 30, x2: x, y2: y, stroke: hue(lane), 'stroke-opacity': 0.75 }));
}

function drawSectors(parts, request) {
  const touched = sectorsOf(request), width = Math.min(165, WIDTH / touched.length), left = (WIDTH - width * touched.length) / 2;
  const place = new Map(touched.map((sector, i) => [sector, left + i * width]));
  touched.forEach((sector, i) => {
    const gap = i && touched[i - 1] !== sector - 1;
    parts.append(shape('rect', { x: place.get(sector) + (gap ? 2 : 0.5), y: 92, width: Math.max(width - (gap ? 2.5 : 1), 1), height: 22, fill: 'var(--pale)' }));
  });
  request.addresses.forEach((address, i) => {
    const lane = request.lanes[i], x = place.get(Math.floor(address / SECTOR)) + (width * (address % SECTOR)) / SECTOR;
    const w = Math.max((width * request.size) / SECTOR - 0.4, 0.8);
    parts.append(shape('rect', { x, y: 92, width: w, height: 22, fill: hue(lane), 'data-lane': lane }));
    drawRay(parts, lane, x + w / 2, 92);
  });
  for (const sector of touched.slice(1)) parts.append(shape('rect', { x: place.get(sector) - 0.5, y: 90, width: 1, height: 26, fill: 'var(--page)' }));
  parts.append(shape('text', { x: 0, y: 126, class: 'soft' }, `${count(touched.length, 'sector')} of 32 bytes; coloured: bytes that a lane uses`));
}

function drawBanks(parts, request) {
  const wavefronts = wavefrontsOf(request), h = rowHeight(wavefronts.length);
  wavefronts.forEach(({ served }, row) => {
    for (let bank = 0; bank < BANKS; bank++) {
      const [, [lane] = []] = served.get(bank) || [];
      parts.append(shape('rect', { x: bank * LANE + 1, y: 92 + row * h, width: LANE - 2, height: h - 1,
        fill: lane === undefined ? 'var(--pale)' : hue(lane), ...(lane === undefined ? {} : { 'data-lane': lane }) }));
    }
  });
  request.addresses.forEach((address, i) => drawRay(parts, request.lanes[i], ((Math.floor(address / WORD) % BANKS) + 0.5) * LANE, 92));
  const rows = (wavefronts.length > 1 ? 'one row for each of ' : '') + count(wavefronts.length, 'wavefront');
  parts.append(shape('text', { x: 0, y: 104 + wavefronts.length * h, class: 'soft' }, `the 32 banks; ${rows}`));
}
const heightOf = ({ space, cost }) => (space === 'shared' ? 110 + cost * rowHeight(cost) : 130);
