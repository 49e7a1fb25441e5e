// What every page here shares: making elements, the data, the theme of the page around this one.
'use strict';

const NS = 'http://www.w3.org/2000/svg';
function shape(name, attributes, text) {
  const element = document.createElementNS(NS, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}
function node(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}
const count = (number, unit) => `${number.toLocaleString('en')} ${unit}${number === 1 ? '' : 's'}`;

// Calls redraw when the theme changes: that of the page around this one, JupyterLab's or the book's; otherwise the system's.
function followTheme(redraw) {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  try {
    if (parent === window) return;
    const { documentElement: page, body } = parent.document, own = document.documentElement;
    const apply = () => {
      const theme = body.dataset.jpThemeLight ? (body.dataset.jpThemeLight === 'true' ? 'light' : 'dark') : page.dataset.theme;
      own.style.colorScheme = theme === 'light' || theme === 'dark' ? theme : '';
      for (const [name, ...theirs] of [['--page', '--jp-layout-color0', '--pst-color-background'], ['--ink', '--jp-content-font-color1', '--pst-color-text-base']]) {
        const colour = theirs.map((their) => parent.getComputedStyle(body).getPropertyValue(their).trim()).find(Boolean);
        if (colour) own.style.setProperty(name, colour);
      }
      redraw();
    };
    for (const element of [page, body]) new parent.MutationObserver(apply).observe(element, { attributes: true });
    apply();
  } catch { /* another origin: the system's theme */ }
}

// In a notebook or a book: the frame is as high as its page, and the picture that stands in for it is hidden.
function fillFrame() {
  try {
    const { frameElement } = window;
    if (!frameElement) return;
    for (const picture of frameElement.parentElement.querySelectorAll('.ladder-still')) picture.hidden = true;
    const fit = () => { frameElement.style.height = `${document.querySelector('main').offsetHeight + 36}px`; };
    new ResizeObserver(fit).observe(document.querySelector('main'));
    fit();
  } catch { /* another origin: the frame keeps its height */ }
}

async function unpacked() {
  const text = document.getElementById('data').textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}
