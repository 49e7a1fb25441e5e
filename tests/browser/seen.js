// What a reader of a page can see of it. test_book.py asks.

function unfold() {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
}

// The boxes of the page, and of the figures in its frames, that hold more than they show: what each is, and its first words.
function scrolled() {
  unfold();
  const hides = (box) => box.clientWidth && box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== 'visible';
  const frames = [...document.querySelectorAll('iframe')].map((frame) => frame.contentDocument.body);
  const boxes = [document.querySelector('main'), ...frames].flatMap((part) => [...part.querySelectorAll('*')].filter(hides));
  return boxes.map((box) => `${box.localName}.${box.className}: ${box.innerText.slice(0, 60)}`);
}

// Makes the first box of a kind one that scrolls.
function plant(selector) {
  const box = document.querySelector(`article ${selector}`);
  const long = Object.assign(document.createElement('span'), { textContent: 'x'.repeat(300) });
  long.style.setProperty('white-space', 'nowrap', 'important');
  long.style.setProperty('overflow-wrap', 'normal', 'important');
  box.style.overflowX = 'auto';
  box.style.display = 'block';
  box.append(long);
}

// Of the X-rays: how many verdicts there are, and those outside of the window or of a box that cuts them.
function verdicts() {
  unfold();
  const all = [...document.querySelectorAll('.ladder-xray :is(td, th):nth-child(7)')];
  const cut = (cell, box) => {
    const inner = cell.getBoundingClientRect(), outer = box.getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1;
  };
  const around = (cell) => [document.body, cell.closest('.output'), cell.closest('table').parentElement];
  return [all.length, all.filter((cell) => around(cell).some((box) => cut(cell, box))).map((cell) => cell.innerText)];
}

// The luminance of a colour, as WCAG 2.2 defines it, and 0.05.
function light(colour) {
  const paper = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
  paper.fillStyle = colour;
  paper.fillRect(0, 0, 1, 1);
  const [r, g, b] = [...paper.getImageData(0, 0, 1, 1).data].map((c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
}

// The contrast of the figures' texts and lanes with the page below them. Text on a lane has the lane's ground, not the page's.
function contrasts() {
  return [...document.querySelectorAll('iframe')].flatMap((frame) => {
    const inside = frame.contentDocument, style = (element) => frame.contentWindow.getComputedStyle(element);
    const page = light(style(inside.body).backgroundColor);
    const ratio = (element) => [light(style(element).fill), page].sort((a, b) => b - a).reduce((a, b) => a / b);
    const texts = [...inside.querySelectorAll('svg text:not(.lit)')].map((text) => [text.textContent, ratio(text)]);
    return [...texts, ...[...inside.querySelectorAll('svg rect[data-lane]')].map((lane) => [`lane ${lane.dataset.lane}`, ratio(lane)])];
  });
}
