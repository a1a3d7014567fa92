// The course of some quantities over time, drawn by hand as SVG.

import {element, setText, svg} from './dom.js';
import {clock, cpu} from './format.js';

const HEIGHT = 190;
const EDGE = {left: 46, right: 10, top: 10, bottom: 24};

// 0, 1, 2 or 5 times a power of ten, four steps at most.
function stepOf(most) {
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5, 10]) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// lines: [{name, kind, stepped, value: pod => number or null}]; unit: number => text, with the unit
export class Plot {
  constructor(figure, lines, unit, pick) {
    this.figure = figure;
    this.lines = lines;
    this.unit = unit;
    this.legend = element('ul', {class: 'legend', 'aria-label': 'Legend'}, ...lines.map(line =>
      element('li', {}, svg('svg', {class: 'key', viewBox: '0 0 24 10', 'aria-hidden': 'true'},
          svg('path', {class: `line ${line.kind}`, d: 'M0 5H24'})), line.name)));
    this.text = element('p', {class: 'plot-text'});
    this.root = svg('svg', {role: 'img', tabindex: -1});
    figure.append(this.legend, this.root, this.text);
    new ResizeObserver(() => this.shown && this.draw(...this.shown)).observe(figure);
    this.root.addEventListener('click', event => {
      const number = this.numberAt(event.clientX - this.root.getBoundingClientRect().left);
      if (number !== null) pick(number);
    });
  }

  // entries: [{at, number, pod}], marks: [{at, from, to}], number: the moment that is shown
  draw(entries, marks, number) {
    this.shown = [entries, marks, number];
    const width = Math.max(this.figure.clientWidth - 32, 240);
    this.root.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.root.setAttribute('height', HEIGHT);
    this.root.replaceChildren();
    if (entries.length === 0) return;
    const from = entries[0].at;
    const until = Math.max(entries.at(-1).at, from + 10000);
    let most = 1;
    for (const {pod} of entries) {
      if (!pod) continue;
      for (const line of this.lines) most = Math.max(most, line.value(pod) ?? 0);
    }
    const step = stepOf(most * 1.05);
    const top = Math.ceil(most * 1.02 / step) * step;
    const x = at => EDGE.left + (at - from) / (until - from) * (width - EDGE.left - EDGE.right);
    const y = value => HEIGHT - EDGE.bottom - value / top * (HEIGHT - EDGE.top - EDGE.bottom);
    this.x = x;

    for (let value = 0; value <= top * 1.001; value += step) {
      this.root.append(
          svg('line', {class: 'grid', x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value)}),
          svg('text', {class: 'tick', x: EDGE.left - 6, y: y(value) + 4, 'text-anchor': 'end'}, String(value)));
    }
    const ticks = width > 520 ? 4 : 2;
    for (let i = 0; i <= ticks; ++i) {
      const at = from + (until - from) * i / ticks;
      this.root.append(svg('text', {
        class: 'tick', x: x(at), y: HEIGHT - 6,
        'text-anchor': i === 0 ? 'start' : i === ticks ? 'end' : 'middle',
      }, clock(at)));
    }
    const gap = this.gapOf(entries);
    for (const line of this.lines) {
      const d = path(entries, line, x, y, gap);
      if (line.area && d) this.root.append(svg('path', {class: `area ${line.kind}`, d: areaOf(entries, line, x, y, gap)}));
      if (d) this.root.append(svg('path', {class: `line ${line.kind}`, d}));
    }
    for (const mark of marks) {
      const at = x(mark.at).toFixed(1);
      const base = HEIGHT - EDGE.bottom;
      const up = mark.to > mark.from;
      this.root.append(svg('path', {
        class: 'mark', d: up ? `M${at} ${base - 10}l5 9h-10z` : `M${at} ${base}l5 -9h-10z`,
      }, svg('title', {}, `${clock(mark.at)}: ${cpu(mark.from)} to ${cpu(mark.to)}`)));
    }
    const entry = entries[number - entries[0].number];
    if (entry) {
      this.root.append(svg('line', {
        class: 'moment', x1: x(entry.at), x2: x(entry.at), y1: EDGE.top, y2: HEIGHT - EDGE.bottom,
      }));
    }
    this.describe(entry, most);
  }

  // What the eye would see, in words.
  describe(entry, most) {
    const parts = [];
    if (entry?.pod) {
      for (const line of this.lines) {
        const value = line.value(entry.pod);
        if (value !== null && value !== undefined) parts.push(`${line.name} ${this.unit(value)}`);
      }
    }
    const now = parts.length ? `${clock(entry.at)}: ${parts.join(', ')}` : 'The pod was not there.';
    setText(this.text, now);
    this.root.setAttribute('aria-label', `${now}; the highest value was ${this.unit(most)}`);
  }

  // So long without a state that the line is broken.
  gapOf(entries) {
    if (entries.length < 3) return Infinity;
    const between = [];
    for (let i = Math.max(1, entries.length - 60); i < entries.length; ++i) {
      between.push(entries[i].at - entries[i - 1].at);
    }
    between.sort((a, b) => a - b);
    return between[between.length >> 1] * 5;
  }

  numberAt(position) {
    const entries = this.shown?.[0];
    if (!entries?.length || !this.x) return null;
    let best = entries[0];
    for (const entry of entries) {
      if (Math.abs(this.x(entry.at) - position) < Math.abs(this.x(best.at) - position)) best = entry;
    }
    return best.number;
  }
}

function piecesOf(entries, line, gap) {
  const pieces = [];
  let piece = null;
  let last = null;
  for (const {at, pod} of entries) {
    const value = pod ? line.value(pod) : null;
    if (value === null || value === undefined || (last !== null && at - last > gap)) piece = null;
    last = at;
    if (value === null || value === undefined) continue;
    if (!piece) pieces.push(piece = []);
    piece.push([at, value]);
  }
  return pieces;
}

function path(entries, line, x, y, gap) {
  let d = '';
  for (const piece of piecesOf(entries, line, gap)) {
    piece.forEach(([at, value], i) => {
      const px = x(at).toFixed(1);
      const py = y(value).toFixed(1);
      if (i === 0) d += `M${px} ${py}`;
      else d += line.stepped ? `H${px}V${py}` : `L${px} ${py}`;
    });
    if (piece.length === 1) d += 'h1';
  }
  return d;
}

function areaOf(entries, line, x, y, gap) {
  let d = '';
  for (const piece of piecesOf(entries, line, gap)) {
    d += `M${x(piece[0][0]).toFixed(1)} ${y(0)}`;
    for (const [at, value] of piece) d += `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    d += `L${x(piece.at(-1)[0]).toFixed(1)} ${y(0)}Z`;
  }
  return d;
}
