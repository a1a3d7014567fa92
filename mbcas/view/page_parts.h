// The style and the script of a Page. Both are a part of the file, which needs nothing else.
#pragma once

namespace mbcas::view {

// The colours here replace those that plots have where they stand alone.
inline constexpr const char* kPageStyle = R"(
:root { color-scheme: light dark; --back: #fff; --ink: #222; --faint: #59636e; --line: #d8dee4;
  --best: #e3f4ec; }
.c0 { --c: #0072b2; } .c1 { --c: #d55e00; } .c2 { --c: #009e73; } .c3 { --c: #b5548a; }
.c4 { --c: #b87a00; } .c5 { --c: #2b8cc4; } .c6 { --c: var(--ink); } .c7 { --c: #808080; }
.c8 { --c: #7b4f1d; } .c9 { --c: #5b2a86; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0d1117; --ink: #e6edf3; --faint: #9ba6b2; --line: #30363d; --best: #12391f; }
  .c0 { --c: #58a6ff; } .c1 { --c: #ff8c42; } .c2 { --c: #2fc494; } .c3 { --c: #e58cbf; }
  .c4 { --c: #e3b341; } .c5 { --c: #8fd3ff; } .c7 { --c: #9a9a9a; } .c8 { --c: #c99a6b; }
  .c9 { --c: #b894e6; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
  max-width: 1180px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .3em .45em; border-bottom: 1px solid var(--line); text-align: left; }
th { vertical-align: bottom; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--back); }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }
td.best { font-weight: bold; background: var(--best); }
figure { margin: 1em 0; overflow-x: auto; position: relative; }
svg { width: 100%; min-width: 600px; height: auto; display: block; }
.back { fill: var(--back); } svg text { fill: var(--faint); } svg .title, svg .key text { fill: var(--ink); }
.grid, .mark { stroke: var(--line); } .mark, .cursor { stroke: var(--faint); }
.curve, .key line { stroke: var(--c); fill: none; } circle.curve { stroke: none; fill: var(--c); }
.key { cursor: pointer; } .key.off { opacity: .45; } .key.off text { text-decoration: line-through; }
.curve.off { display: none; }
.tip { position: absolute; top: 44px; pointer-events: none; font-size: 12px; white-space: nowrap;
  background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .2em .5em; }
.tip b { color: var(--c); }
svg:focus-visible, .key:focus-visible { outline: 2px solid #58a6ff; }
summary { cursor: pointer; font-weight: bold; padding: .4em 0; }
)";

// A series is shown or hidden by its name in the legend. Under the pointer, or with the arrow
// keys, a line across the plot says what each series has there.
inline constexpr const char* kPageScript = R"JS(
'use strict';
for (const figure of document.querySelectorAll('figure')) {
  const svg = figure.querySelector('svg');
  const scale = Object.fromEntries(
    ['left', 'right', 'from', 'to', 'top', 'bottom', 'most', 'log'].map(
      name => [name, Number(svg.dataset[name])]));
  const curves = [...svg.querySelectorAll('path.curve')].map(path => ({
    path, name: path.dataset.name, colour: path.classList[1],
    // [x, y] of each corner; null where the line is broken
    corners: path.getAttribute('d').split(/(?=[ML])/).flatMap(part => {
      const point = part.slice(1).split(' ').map(Number);
      return part[0] === 'M' ? [null, point] : [point];
    }),
  }));
  svg.querySelectorAll('.key').forEach((key, i) => {
    const toggle = () => {
      const off = key.classList.toggle('off');
      key.setAttribute('aria-pressed', String(!off));
      svg.querySelectorAll(`[data-series="${i}"]`).forEach(
        part => part.classList.toggle('off', off));
    };
    key.addEventListener('click', toggle);
    key.addEventListener('keydown', event => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      toggle();
    });
  });

  const tip = document.createElement('output');
  tip.className = 'tip';
  tip.hidden = true;
  figure.append(tip);
  const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  cursor.setAttribute('class', 'cursor');
  cursor.setAttribute('y1', scale.top);
  cursor.setAttribute('y2', scale.bottom);
  const short = value => Number(value.toPrecision(3)).toString();

  function valueAt(corners, x) {
    for (let i = 1; i < corners.length; ++i) {
      const [a, b] = [corners[i - 1], corners[i]];
      if (!a || !b || x < a[0] || x > b[0]) continue;
      const y = b[0] > a[0] ? a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]) : b[1];
      return (scale.bottom - y) / (scale.bottom - scale.top) * scale.most;
    }
    return null;
  }
  let at = null;
  function show(x) {
    at = x;
    tip.hidden = x === null;
    if (x === null) { cursor.remove(); return; }
    at = x = Math.min(Math.max(x, scale.left), scale.right);
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    svg.append(cursor);
    const across = scale.from +
      (x - scale.left) / (scale.right - scale.left) * (scale.to - scale.from);
    const lines = [`${short(scale.log ? 10 ** across : across)} ${svg.dataset.unit}`];
    tip.replaceChildren(lines[0]);
    for (const curve of curves) {
      const value = curve.path.classList.contains('off') ? null : valueAt(curve.corners, x);
      if (value === null) continue;
      const row = document.createElement('div');
      const mark = document.createElement('b');
      mark.className = curve.colour;
      mark.textContent = '\u25cf ';
      row.append(mark, `${curve.name} ${short(value)}`);
      tip.append(row);
    }
    // On the side where there is room.
    const box = svg.getBoundingClientRect();
    const left = x / svg.viewBox.baseVal.width * box.width;
    tip.style.left = left > box.width / 2 ? `${left - tip.offsetWidth - 10}px` : `${left + 10}px`;
  }
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect();
    show((event.clientX - box.left) / box.width * svg.viewBox.baseVal.width);
  });
  svg.addEventListener('pointerleave', () => show(null));
  svg.addEventListener('blur', () => show(null));
  svg.addEventListener('keydown', event => {
    const step = {ArrowLeft: -6, ArrowRight: 6}[event.key];
    if (event.key === 'Escape') show(null);
    if (!step || event.target !== svg) return;
    event.preventDefault();
    show((at ?? scale.left) + step);
  });
}
)JS";

}  // namespace mbcas::view
