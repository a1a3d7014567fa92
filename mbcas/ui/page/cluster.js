// The view of a cluster: a tile for each node, as short of CPU as its price says, and the sums of
// namespaces. There may be thousands of nodes, so a tile is changed only when what it says does.

import {KeyedList, LONGEST_NOTE, byId, element, setAttribute, setHidden, setText} from './dom.js';
import {cores, duration} from './format.js';
import {PodSearch} from './pods.js';

export const nodeLink = node => `#/node/${encodeURIComponent(node)}`;

// At this price the kernel's weights, 1024 for each CPU that is requested, buy no more than what
// was requested.
const REQUEST = 1.024;

// How short of CPU a node is. The mark and the words say the same as the colour.
const LEVELS = [
  {kind: 'calm', mark: '', text: 'not short: no pod is bound'},
  {kind: 'low', mark: '▁', text: `price below ${REQUEST / 2}: bound pods get more than twice their request`},
  {kind: 'high', mark: '▄', text: `price below ${REQUEST}: bound pods get more than their request`},
  {kind: 'full', mark: '█', text: 'price above that: bound pods get their request or less'},
  {kind: 'over', mark: '✕', text: 'overloaded: not even the floors fit'},
];

export function levelOf({price}) {
  if (price === null) return LEVELS[4];
  if (!(price > 0)) return LEVELS[0];
  return price < REQUEST / 2 ? LEVELS[1] : price < REQUEST ? LEVELS[2] : LEVELS[3];
}

const pods = count => (count === 1 ? '1 pod' : `${count} pods`);

function wordsOf(node) {
  const words = [];
  if (!node.ready) words.push('not ready');
  if (node.price === null) words.push('overloaded');
  if (node.price > 0) words.push(`price ${node.price.toPrecision(3)}`);
  if (node.bound > 0) words.push(`${node.bound} bound`);
  if (node.failed > 0) words.push(`${node.failed} failed`);
  if (words.length === 0) words.push(pods(node.pods));
  return words.join(', ');
}

// How much is missing, and since when.
function missingOf(node, now) {
  const words = [];
  if (node.held > 0) words.push(`${cores(node.held)} held back`);
  if (node.shortSince) words.push(`for ${duration(Math.max(0, now - node.shortSince))}`);
  return words.join(' ');
}

class Tile {
  constructor({node}) {
    this.mark = element('span', {'class': 'level', 'aria-hidden': 'true'});
    this.words = element('span', {'class': 'words'});
    this.missing = element('span', {'class': 'words missing'});
    this.link = element('a', {href: nodeLink(node)}, element('span', {'class': 'name'}, node), this.mark,
        this.words, this.missing);
    this.root = element('li', {'class': 'tile'}, this.link);
    this.said = '';
  }
  update({of: node, words, missing}) {
    const {kind, mark} = levelOf(node);
    const said = `${kind} ${node.ready} ${words} ${missing}`;
    if (said === this.said) return;
    this.said = said;
    setAttribute(this.root, 'data-level', kind);
    setAttribute(this.root, 'data-ready', node.ready);
    setText(this.mark, mark);
    setText(this.words, words);
    setText(this.missing, missing);
  }
}

class Figure {
  constructor({label}) {
    this.value = element('dd', {'class': 'value'});
    this.rule = element('dd', {'class': 'rule'});
    this.root = element('div', {}, element('dt', {}, label), this.value, this.rule);
  }
  update({value, rule}) {
    setText(this.value, value);
    setText(this.rule, rule);
  }
}

const COLUMNS = {pods: 'pods', use: 'use', have: 'have', wanted: 'would have', held: 'held back', bound: 'bound', failed: 'failed'};

const AMOUNTS = new Set(['have', 'wanted', 'held']);

// Not every decision tells the pod's use.
function useOf({pods: all, use, useTold}) {
  if (!useTold) return '–';
  return useTold < all ? `≥ ${cores(use)}` : cores(use);
}

class Row {
  constructor({namespace}) {
    this.cells = Object.entries(COLUMNS).map(([name, label]) =>
      ({name, cell: element('td', {'data-label': label})}));
    this.root = element('tr', {}, element('th', {scope: 'row'}, namespace),
        ...this.cells.map(({cell}) => cell));
  }
  update(sum) {
    for (const {name, cell} of this.cells) {
      setText(cell, name === 'use' ? useOf(sum) : AMOUNTS.has(name) ? cores(sum[name]) : sum[name]);
    }
  }
}

const worst = node => (node.price === null ? Infinity : node.price);
const byName = (a, b) => (a.node < b.node ? -1 : a.node > b.node ? 1 : 0);
const ORDERS = {
  name: byName,
  price: (a, b) => worst(b) - worst(a) || byName(a, b),
  held: (a, b) => b.held - a.held || byName(a, b),
  pods: (a, b) => b.pods - a.pods || byName(a, b),
};

export class ClusterView {
  // findPods(text) answers with pods by their names.
  constructor(redraw, findPods) {
    this.search = new PodSearch(byId('found-pods'), findPods);
    this.figures = new KeyedList(byId('cluster-figures'), item => new Figure(item));
    this.tiles = new KeyedList(byId('tiles'), node => new Tile(node));
    this.rows = new KeyedList(byId('namespaces'), sum => new Row(sum));
    this.notes = new KeyedList(byId('cluster-notes'), () => {
      const root = element('li');
      return {root, update: ({text}) => setText(root, text, LONGEST_NOTE)};
    });
    byId('legend-levels').append(...LEVELS.map(({kind, mark, text}) => element('li', {},
        element('span', {'class': 'swatch', 'data-level': kind, 'aria-hidden': 'true'}, mark), text)));
    byId('find-node').addEventListener('input', event => {
      this.search.ask(event.target.value);
      redraw();
    });
    byId('sort-node').addEventListener('change', redraw);
    byId('only-short').addEventListener('change', redraw);
  }

  draw(picture, now) {
    const wanted = byId('find-node').value.trim().toLowerCase();
    const only = byId('only-short').checked;
    const nodes = picture.nodes ?? [];
    const shown = nodes.filter(node =>
      node.node.toLowerCase().includes(wanted) && (!only || levelOf(node) !== LEVELS[0]));
    shown.sort(ORDERS[byId('sort-node').value] ?? ORDERS.price);
    const tiles = shown.map(of => ({node: of.node, of, words: wordsOf(of), missing: missingOf(of, now)}));
    this.tiles.update(tiles, ({node}) => node);
    setText(byId('tiles-count'), `${shown.length} of ${nodes.length}`);
    setHidden(byId('no-node'), shown.length > 0 || nodes.length === 0);
    const sums = (picture.namespaces ?? []).filter(({namespace}) => namespace.toLowerCase().includes(wanted))
        .sort((a, b) => b.held - a.held || (a.namespace < b.namespace ? -1 : 1));
    // With a node's name in the field there may be no namespace of that name.
    this.rows.update(sums, ({namespace}) => namespace);
    setHidden(byId('namespace-table'), sums.length === 0);
    this.figures.update(figuresOf(nodes), ({label}) => label);
    const notes = (picture.notes ?? []).map((text, i) => ({text, i}));
    this.notes.update(notes, ({i}) => i);
    setHidden(byId('cluster-notes'), notes.length === 0);
  }
}

function figuresOf(nodes) {
  const sum = name => nodes.reduce((total, node) => total + (node[name] ?? 0), 0);
  const short = nodes.filter(node => levelOf(node) !== LEVELS[0]).length;
  return [
    {label: 'Nodes', value: nodes.length, rule: `${cores(sum('capacity'))} allocatable`},
    {label: 'Short of CPU', value: short, rule: short === 1 ? 'node' : 'nodes'},
    {label: 'Managed pods', value: sum('pods'), rule: `limits of ${cores(sum('have'))}, use ${useOf(
        {pods: sum('pods'), use: sum('use'), useTold: sum('useTold')})}`},
    {label: 'Held back', value: cores(sum('held')), rule: 'of what they would have, by bounds and scarcity'},
    {label: 'Bound', value: pods(sum('bound')), rule: 'for pods that matter more'},
    {label: 'Failed', value: pods(sum('failed')), rule: 'whose limit cannot be changed'},
  ];
}
