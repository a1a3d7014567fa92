// What if: other weights, bounds or capacity, and hogs. The law itself answers on the server; nothing
// is applied.

import {byId, element, setAttribute, setHidden, setText} from './dom.js';
import {clock, cpu, nameOf} from './format.js';
import {wantOf} from './market.js';

const PAUSE = 120;            // ms after the last change before it is asked
const MOST_ROWS = 200;        // those that use most
const LEAST_WEIGHT = 2;       // of a BestEffort pod, the kernel's smallest
const OTHER_WEIGHT = 1024;    // of a cgroup about which nothing is known: the kernel's default

const FIELDS = [
  {key: 'request', label: 'request, m', least: 0, most: 1e7, of: pod => pod.managed},
  {key: 'weight', label: 'kernel weight', least: 0.001, most: 1e6, of: pod => !pod.managed},
  {key: 'factor', label: 'matters, times', least: 0.1, most: 100, of: pod => pod.managed},
  {key: 'ceiling', label: 'ceiling, m', least: 0, most: 1e7, of: pod => pod.managed},
  {key: 'demand', label: 'wants, m', least: 0, most: 1e7, of: () => true},
];

const DRAG = 100;     // positions of a slider; in the middle is what the question began with
const WIDEST = 8;     // times that, at its ends

const tidy = number => Number(number.toPrecision(4));

// What follows from a pod's request: the kernel's weight, and the floor, unless that is higher.
function request(pod, amount) {
  const {begin} = pod;
  pod.request = amount;
  pod.weight = tidy(Math.max(begin.request > 0 ? begin.weight * amount / begin.request : amount * 1.024,
      LEAST_WEIGHT));
  pod.floor = begin.floor > begin.request ? Math.max(begin.floor, amount) : amount;
}

// The node as it is shown, as a question.
function questionOf(data) {
  const market = data.market ?? {};
  const pods = [];
  let unmanaged = market.unmanagedUse ?? 0;
  for (const pod of data.pods ?? []) {
    if (pod.leftAlone) {
      unmanaged -= pod.usage ?? 0;
      pods.push({name: nameOf(pod), managed: false, weight: OTHER_WEIGHT, demand: pod.usage ?? 0});
      continue;
    }
    const requested = (pod.containers ?? []).reduce((sum, {request: own}) => sum + (own ?? 0), 0);
    const begin = {
      request: requested, floor: pod.bounds?.floor ?? 0,
      weight: tidy(pod.kernelWeight ?? Math.max(requested * 1.024, LEAST_WEIGHT)),
    };
    pods.push({
      name: nameOf(pod), managed: true, ...begin, begin,
      factor: tidy(Math.min(Math.max((pod.weight || 1) / Math.max(requested, 1), 0.1), 100)),
      demand: Math.round(wantOf(pod, market)),
      declared: pod.declared ?? 0, ceiling: pod.bounds?.ceiling ?? null,
    });
  }
  for (const other of data.others ?? []) {
    unmanaged -= other.usage ?? 0;
    pods.push({name: other.name, managed: false, weight: tidy(other.kernelWeight ?? OTHER_WEIGHT),
               demand: other.usage ?? 0});
  }
  if (unmanaged >= 1) {
    pods.push({name: 'everything else', managed: false, weight: OTHER_WEIGHT,
               demand: Math.round(unmanaged)});
  }
  if (pods.length > MOST_ROWS) pods.sort((a, b) => b.demand - a.demand).length = MOST_ROWS;
  return {capacity: market.wholeMachine === false ? data.capacity ?? 0 : market.capacity ?? 0, pods};
}

// A number by dragging. From the middle, which is `begin`, to its ends the steps multiply; where it
// begins with nothing they add up to `most` instead.
class Slider {
  constructor(label, {least, most: greatest}, begin, most, taken) {
    this.begin = begin;
    this.most = most || 1000;
    this.root = element('input', {type: 'range', min: 0, max: DRAG, step: 1, 'aria-label': `${label}, to drag`});
    this.show(begin);
    this.root.addEventListener('input', () => {
      const at = this.root.valueAsNumber;
      const number = begin > 0 ? begin * WIDEST ** (2 * at / DRAG - 1) : this.most * at / DRAG;
      const shown = tidy(Math.min(Math.max(number, least), greatest));
      setAttribute(this.root, 'aria-valuetext', shown);
      taken(at === DRAG / 2 && begin > 0 ? begin : shown);
    });
  }
  // Where the number was given in another way.
  show(number) {
    if (!(number >= 0)) return;
    const at = this.begin > 0 ? (Math.log(number / this.begin) / Math.log(WIDEST) + 1) * DRAG / 2
      : number / this.most * DRAG;
    this.root.value = Math.min(Math.max(at, 0), DRAG);
    setAttribute(this.root, 'aria-valuetext', tidy(number));
  }
}

export class WhatIf {
  // ask(question) answers with a price and what each pod gets.
  constructor(ask) {
    this.ask = ask;
    this.box = byId('what-if');
    this.list = byId('what-if-pods');
    this.capacity = byId('what-if-capacity');
    this.rows = [];
    this.number = 0; // of the last question
    this.box.addEventListener('toggle', () => this.box.open && this.begin());
    byId('what-if-again').addEventListener('click', () => this.begin());
    byId('what-if-hog').addEventListener('click', () => this.addHog());
    this.capacity.addEventListener('input', () => {
      this.slider?.show(this.capacity.valueAsNumber);
      this.change();
    });
  }

  // The state that a new question begins with.
  draw(data, at) {
    this.shown = {data, at};
    if (this.box.open && !this.question) this.begin();
  }

  begin() {
    if (!this.shown) return;
    this.question = questionOf(this.shown.data);
    this.price = this.shown.data.market?.price ?? 0;
    this.before = null;
    this.hogs = 0;
    this.capacity.value = this.question.capacity;
    this.slider?.root.remove();
    this.slider = new Slider('CPU to share', {least: 0, most: 1e7}, this.question.capacity, 0, number => {
      this.capacity.value = number;
      this.change();
    });
    byId('what-if-drag').append(this.slider.root);
    setText(byId('what-if-from'), `From the moment ${clock(this.shown.at)}.`);
    this.list.replaceChildren();
    this.rows = [];
    for (const pod of this.question.pods) this.addRow(pod);
    this.send(true);
  }

  // As a BestEffort pod next to the managed pods.
  addHog() {
    if (!this.question || this.rows.length >= MOST_ROWS + 20) return;
    const requests = this.question.pods.filter(pod => pod.managed && pod.request > 0);
    const scales = requests.map(pod => pod.weight / (pod.request * 1.024)).sort((a, b) => a - b);
    const scale = scales.length ? scales[scales.length >> 1] : 1;
    const pod = {name: `hog ${++this.hogs}`, managed: false, weight: tidy(LEAST_WEIGHT * scale),
                 demand: Number(this.capacity.value) || this.question.capacity};
    this.question.pods.push(pod);
    this.addRow(pod);
    this.send();
  }

  addRow(pod) {
    const result = element('p', {class: 'result'});
    const group = element('div', {role: 'group', 'aria-label': `What if: ${pod.name}`},
        element('p', {class: 'name'}, pod.name), element('div', {class: 'fields'},
            ...FIELDS.filter(field => field.of(pod)).map(field => this.input(pod, field))), result);
    this.list.append(element('li', {}, group));
    this.rows.push({pod, result});
  }

  input(pod, field) {
    const input = element('input', {type: 'number', min: field.least, max: field.most, step: 'any',
                                    'data-field': field.key});
    input.value = pod[field.key] ?? '';
    const slider = new Slider(`${pod.name}: ${field.label}`, field, pod[field.key] ?? this.question.capacity,
        this.question.capacity, number => {
          input.value = number;
          take();
        });
    const take = () => {
      const number = input.valueAsNumber;
      const good = input.value === '' && field.key === 'ceiling' && !input.validity.badInput ||
          number >= field.least && number <= field.most;
      input.setAttribute('aria-invalid', String(!good));
      if (!good) return;
      if (field.key === 'request') request(pod, number);
      else pod[field.key] = Number.isNaN(number) ? null : number;
      this.change();
    };
    input.addEventListener('input', () => {
      slider.show(input.valueAsNumber);
      take();
    });
    return element('div', {}, element('label', {}, field.label, ' ', input), slider.root);
  }

  change() {
    const capacity = this.capacity.valueAsNumber;
    const good = capacity >= 0 && capacity <= 1e7;
    this.capacity.setAttribute('aria-invalid', String(!good));
    if (!good) return;
    this.question.capacity = capacity;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), PAUSE);
  }

  // What a beginning is answered is what the changes are compared with, also if some of them have
  // been made by then.
  async send(begins = false) {
    const number = ++this.number;
    const question = this.question;
    try {
      const answer = await this.ask(question);
      if (question !== this.question) return;
      if (begins || !this.before) this.before = answer;
      if (number !== this.number) return;
      this.show(answer);
      setHidden(byId('what-if-trouble'), true);
    } catch (error) {
      setText(byId('what-if-trouble'), `No answer: ${error.message}`);
      setHidden(byId('what-if-trouble'), false);
    }
  }

  show(answer) {
    const bound = answer.pods.filter(pod => pod.bound).length;
    // As equals below the machine the pods have other weights than in its tree, so the price has
    // another unit. It is told in that of the node.
    const real = this.price;
    const unit = real > 0 && this.before.price > 0 ? real / this.before.price : 1;
    const price = number => number === 0 ? '0' : (number * unit).toPrecision(3);
    const was = this.before.price === answer.price ? '' : `${price(this.before.price)} → `;
    setText(byId('what-if-sum'),
        `Price ${was}${price(answer.price)}; ${bound === 1 ? '1 pod' : `${bound} pods`} bound for others.`);
    this.rows.forEach(({pod, result}, i) => {
      const now = answer.pods[i];
      if (!now) return;
      const before = this.before.pods[i];
      const change = before ? now.award - before.award : 0;
      const parts = [before && change !== 0
          ? `award ${cpu(before.award)} → ${cpu(now.award)} (${change > 0 ? '▲' : '▼'} ${cpu(Math.abs(change))})`
          : `award ${cpu(now.award)}`];
      parts.push(`the kernel alone ${cpu(now.byKernel)}`);
      if (pod.managed && now.limit !== null) parts.push(`limit ${cpu(now.limit)}`);
      if (now.bound) parts.push('▼ bound');
      if (now.helped) parts.push('▲ helped');
      setText(result, parts.join(' · '));
    });
  }
}
