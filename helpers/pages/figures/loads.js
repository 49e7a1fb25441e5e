// What does a load cost? The reader predicts, then sees the sectors or wavefronts. The presets are made by loads.py.

// The request of an access: lanes in rows of a matrix, as in loads.py.
function requestOf({ space, size, across, stride, pitch, offset }) {
  const lanes = [...Array(LANES).keys()];
  const addresses = lanes.map((i) => size * (offset + Math.floor(i / across) * pitch + (i % across) * stride));
  return { space, size, lanes, addresses };
}

// What a request costs: sectors or wavefronts, and the fewest that would do.
function costOf(request) {
  if (request.space === 'shared') {
    const wavefronts = wavefrontsOf(request);
    return { cost: wavefronts.length, ideal: new Set(wavefronts.map(({ first }) => first)).size, unit: 'wavefront' };
  }
  const used = new Set(request.addresses).size * request.size;
  return { cost: sectorsOf(request).length, ideal: Math.ceil(used / SECTOR), unit: 'sector', used };
}

// The bank whose lanes wait longest, in words.
function conflictOf(request) {
  const turns = Array(BANKS).fill(0);
  for (const { served } of wavefrontsOf(request)) for (const bank of served.keys()) turns[bank] += 1;
  return `bank ${turns.indexOf(Math.max(...turns))} has to serve ${Math.max(...turns)} words, one at a time`;
}

function explained(request) {
  const { cost, ideal, unit, used } = costOf(request), best = cost === ideal;
  const efficiency = `${ideal} would do: efficiency ${Math.round((100 * ideal) / cost)}%.`;
  if (unit === 'sector') return `${(cost * SECTOR).toLocaleString('en')} bytes move, ${used} of them are used. ${best ? 'No access to as many bytes needs fewer sectors.' : efficiency}`;
  const parts = { 8: ' Accesses of 8 bytes are served in halves of a warp.', 16: ' Accesses of 16 bytes are served in quarters of a warp.' }[request.size] || '';
  return best ? `No bank has to serve two words at a time: there is no conflict.${parts}` : `${conflictOf(request)[0].toUpperCase()}${conflictOf(request).slice(1)}. ${efficiency}${parts}`;
}

// The index, as it would be in a kernel.
function indexText({ across, stride, pitch, offset }) {
  const times = (index, factor) => (factor === 0 ? '' : factor === 1 ? index : `${factor} * ${index}`);
  const terms = across === LANES ? [times('i', stride)] : across === 1 ? [times('i', pitch)]
    : [times(`(i / ${across})`, pitch), times(`(i % ${across})`, stride)];
  return [offset || '', ...terms].filter(Boolean).join(' + ') || '0';
}

const KNOBS = ['space', 'size', 'across', 'stride', 'pitch', 'offset'];

class Loads {
  constructor({ presets, first }) {
    this.$ = (id) => document.getElementById(id);
    this.presets = presets;
    this.asked = this.right = 0;
    this.boxes = laneBoxes();
    this.touched = shape('g', {});
    this.$('picture').append(...this.boxes.flat(), this.touched);
    lightLanes(this.boxes, -1);
    this.buttons = presets.map((preset) => node('button', { type: 'button', textContent: preset.name, onclick: () => this.choose(preset) }));
    for (const lesson of new Set(presets.map((preset) => preset.lesson)))
      this.$('presets').append(node('div', { className: 'buttons' }, node('span', { textContent: `lesson ${lesson}` }), ...this.buttons.filter((_, i) => presets[i].lesson === lesson)));
    for (const knob of KNOBS) this.$(knob).addEventListener('input', () => this.change());
    this.$('predict').addEventListener('input', () => this.draw(!this.$('predict').checked || this.shown));
    this.$('show').onclick = () => this.answer();
    this.$('ask').onsubmit = (event) => { event.preventDefault(); this.answer(this.$('guess').valueAsNumber); };
    this.choose(presets[first]);
    followTheme(() => {});
    fillFrame();
  }

  choose(preset) {
    for (const knob of KNOBS) this.$(knob).value = preset[knob];
    this.change();
  }

  get access() {
    return Object.fromEntries(KNOBS.map((knob) => [knob, knob === 'space' ? this.$(knob).value : +this.$(knob).value]));
  }

  change() {
    this.$('guess').value = '';
    this.draw(!this.$('predict').checked);
  }

  answer(guess) {
    const { cost } = costOf(requestOf(this.access));
    if (guess !== undefined) this.asked += 1;
    this.right += guess === cost;
    this.draw(true, guess);
    this.$('said').focus();  // the form is hidden now
  }

  draw(shown, guess) {
    const { $, access } = this, request = requestOf(access), { cost, ideal, unit } = costOf(request);
    this.shown = shown;
    for (const knob of ['stride', 'pitch', 'offset']) $(`${knob}_value`).textContent = access[knob];
    $('stride').disabled = access.across === 1;
    $('pitch').disabled = access.across === LANES;
    $('expression').textContent = `x[${indexText(access)}]`;
    this.buttons.forEach((button, i) => button.setAttribute('aria-pressed', KNOBS.every((knob) => this.presets[i][knob] === access[knob])));
    $('question').textContent = `How many ${unit}s does this load take?`;
    $('ask').hidden = shown;
    const verdict = guess === undefined ? '' : guess === cost ? 'Right: ' : `You said ${guess}; it is `;
    const tally = this.asked > 1 && guess !== undefined ? ` (${this.right} of ${this.asked} right)` : '';
    const rank = cost === ideal ? 'good' : ideal / cost > 0.4 ? 'fair' : 'bad';
    $('said').replaceChildren(...(shown ? [verdict, node('b', { className: rank, textContent: count(cost, unit) }), `. ${explained(request)}${tally}`] : []));
    const parts = document.createDocumentFragment();
    if (shown) (unit === 'sector' ? drawSectors : drawBanks)(parts, request);
    else parts.append(shape('text', { x: WIDTH / 2, y: 66, 'text-anchor': 'middle', class: 'soft' }, unit === 'sector' ? 'which sectors?' : 'which banks, and in how many turns?'));
    const caption = parts.querySelector('text[x="0"]');  // below the picture: it would be too small on a phone
    $('caption').textContent = caption?.textContent || '';
    caption?.remove();
    this.touched.replaceChildren(parts);
    $('picture').setAttribute('viewBox', `0 8 ${WIDTH} ${shown ? (unit === 'sector' ? 110 : 88 + cost * rowHeight(cost)) : 80}`);
    $('picture').setAttribute('aria-label', shown ? `the lanes of the warp, and ${count(cost, unit)}` : 'the 32 lanes of the warp');
    $('place').textContent = unit === 'sector' ? 'sector' : 'bank';
    $('table').replaceChildren(...(shown ? request.addresses.map((a, lane) => {
      const last = a + access.size - 1, [from, to] = unit === 'sector' ? [Math.floor(a / SECTOR), Math.floor(last / SECTOR)] : [Math.floor(a / WORD) % BANKS, Math.floor(last / WORD) % BANKS];
      return node('tr', {}, ...[lane, a / access.size, `${a} to ${last}`, from === to ? from : `${from} to ${to}`].map((textContent) => node('td', { textContent })));
    }) : []));
  }
}

if (typeof document !== 'undefined') unpacked().then((data) => { window.loads = new Loads(data); });
