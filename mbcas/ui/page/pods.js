// Pods as their PodAllocations tell of them: those of a node whose agent cannot be observed, and
// those that a search finds in the whole cluster.

import {KeyedList, byId, element, setAttribute, setHidden, setText} from './dom.js';
import {cpu, nameOf} from './format.js';

const PAUSE = 200; // ms after the last letter before it is asked
const MOST_FOUND = 20;

const linkOf = pod =>
  `#/node/${encodeURIComponent(pod.node)}/pod/${encodeURIComponent(nameOf(pod))}`;

class Found {
  constructor(pod) {
    this.link = element('a', {href: linkOf(pod)}, nameOf(pod));
    this.where = element('span', {'class': 'soft'});
    this.root = element('li', {}, this.link, ' ', this.where);
  }
  update(pod) {
    const words = [`on ${pod.node || 'no node'}`, `limit ${cpu(pod.have)}`];
    if (pod.bound) words.push('▼ bound');
    setText(this.where, words.join(', '));
  }
}

export class PodSearch {
  // find({text}) answers with {pods, all}.
  constructor(box, find) {
    this.box = box;
    this.find = find;
    this.title = element('h4');
    this.list = element('ul');
    this.found = new KeyedList(this.list, pod => new Found(pod));
    this.number = 0; // of the last question
    box.append(this.title, this.list);
    setHidden(box, true);
  }

  ask(text) {
    clearTimeout(this.timer);
    const number = ++this.number;
    const wanted = text.trim();
    if (wanted.length < 2) return setHidden(this.box, true);
    this.timer = setTimeout(async () => {
      try {
        const {pods, all} = await this.find({text: wanted});
        if (number !== this.number) return;
        const shown = pods.slice(0, MOST_FOUND);
        this.found.update(shown, linkOf);
        setText(this.title, all > shown.length ? `Pods: the first ${shown.length} of ${all}` : `Pods: ${all}`);
        setHidden(this.box, all === 0);
      } catch { /* What was found before stays. */ }
    }, PAUSE);
  }
}

const COLUMNS = {declared: 'declared', have: 'limit', wanted: 'would have'};

class Row {
  constructor(pod) {
    this.cells = Object.entries(COLUMNS).map(([name, label]) =>
      ({name, cell: element('td', {'data-label': label})}));
    this.phase = element('td', {'data-label': 'phase'});
    this.why = element('td', {'data-label': 'why', 'class': 'why'});
    this.root = element('tr', {}, element('th', {scope: 'row'}, nameOf(pod)),
        ...this.cells.map(({cell}) => cell), this.phase, this.why);
  }
  update({pod, chosen}) {
    for (const {name, cell} of this.cells) setText(cell, cpu(pod[name]));
    setText(this.phase, pod.bound ? `${pod.phase}, ▼ bound` : pod.phase || '–');
    setText(this.why, pod.reason);
    setAttribute(this.root, 'aria-current', chosen);
  }
}

// Of one node, a row for each pod.
export class PodTable {
  constructor(find, redraw) {
    this.find = find;
    this.redraw = redraw;
    this.rows = new KeyedList(byId('plain-rows'), ({pod}) => new Row(pod));
    this.node = null;
    this.answer = null;
  }

  // What is shown may be a few seconds old.
  async ask(node) {
    if (this.node !== node) this.answer = null;
    this.node = node;
    try {
      const answer = await this.find({node});
      if (this.node !== node) return;
      this.answer = answer;
      this.redraw();
    } catch { /* It is asked again soon. */ }
  }

  // `key` of the pod that was asked for, or null.
  draw(node, key) {
    setText(byId('plain-heading'), node);
    const {pods, all} = this.node === node && this.answer || {pods: [], all: 0};
    setText(byId('plain-count'), all > pods.length ? `the first ${pods.length} of ${all}` : `${all}`);
    this.rows.update(pods.map(pod => ({pod, chosen: nameOf(pod) === key})), ({pod}) => nameOf(pod));
    setHidden(byId('plain-table'), all === 0);
    if (key !== this.chosen) {
      this.chosen = null;
      const row = byId('plain-rows').querySelector('[aria-current=true]');
      if (row) {
        row.scrollIntoView({block: 'center'});
        this.chosen = key;
      }
    }
  }
}
