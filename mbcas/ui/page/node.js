// The view of a node: its figures, its market, and a vessel for each participant.

import {KeyedList, byId, element, setAttribute, setHidden, setStyle, setText} from './dom.js';
import {cpu, nameOf, percent, price} from './format.js';
import {MarketView} from './market.js';
import {WhatIf} from './what_if.js';

// Of the node that is shown; empty where there is only one.
export const place = {node: ''};

export const podLink = key => (place.node ? `#/node/${encodeURIComponent(place.node)}/pod/${encodeURIComponent(key)}`
  : `#/pod/${encodeURIComponent(key)}`);

// What is special about a pod, in words; `mark` is for the eye alone.
export function conditionsOf(pod) {
  const found = [];
  if (pod.leftAlone) found.push({kind: 'alone', mark: '○', text: `left alone: ${pod.leftAlone}`});
  if (pod.constrained) {
    const names = pod.boundFor?.length ? pod.boundFor.join(', ') : 'a pod that matters more';
    found.push({kind: 'bound', mark: '▼', text: `bound for ${names}`});
  }
  if (pod.help === 'probe') found.push({kind: 'helped', mark: '▲', text: 'helped, on trial'});
  if (pod.help === 'held') found.push({kind: 'helped', mark: '▲', text: 'helped'});
  if (pod.blocked >= 1) {
    found.push({kind: 'blocked', mark: '■', text: `held back ${Math.round(pod.blocked)} ms/s`});
  }
  if (pod.heldBy) found.push({kind: 'held', mark: '◷', text: `limit moves later: ${pod.heldBy}`});
  if (found.length === 0 && pod.desired) found.push({kind: 'free', mark: '●', text: 'free'});
  return found;
}

export function chips(conditions) {
  return conditions.map(({kind, mark, text}) => element('span', {class: `chip ${kind}`},
      element('span', {'aria-hidden': 'true'}, `${mark} `), text));
}

class Chips {
  constructor(root) {
    this.root = root;
    this.shown = '';
  }
  update(conditions) {
    const now = JSON.stringify(conditions);
    if (now === this.shown) return;
    this.shown = now;
    this.root.replaceChildren(...chips(conditions));
  }
}

const share = (amount, scale) => `${(Math.min(Math.max(amount / scale, 0), 1) * 100).toFixed(2)}%`;

// {key, pod} of a managed or known pod, or {key, other} of another consumer.
class Vessel {
  constructor({key, other}) {
    this.name = other ? element('span', {class: 'name'}) : element('a', {class: 'name', href: podLink(key)});
    this.chips = new Chips(element('span', {class: 'chips'}));
    this.room = element('span', {class: 'room'});
    this.use = element('span', {class: 'use'});
    this.blocked = element('span', {class: 'blocked'});
    this.limit = element('span', {class: 'limit'});
    this.award = element('span', {class: 'award'});
    this.bar = element('div', {class: 'bar', 'aria-hidden': 'true'},
        this.room, this.use, this.blocked, this.limit, this.award);
    this.numbers = element('p', {class: 'numbers'});
    this.root = element('li', {class: other ? 'vessel other' : 'vessel'},
        element('p', {class: 'head'}, this.name, this.chips.root), this.bar, this.numbers);
  }

  update({key, pod, other, scale, capacity}) {
    setText(this.name, key);
    const usage = (pod ?? other).usage ?? 0;
    setStyle(this.use, 'width', share(usage, scale));
    if (other) {
      this.chips.update([{kind: 'alone', mark: '○', text: 'not managed'}]);
      setStyle(this.room, 'left', '0%');
      setStyle(this.room, 'width', '100%');
      setText(this.numbers, `uses ${cpu(usage)}`);
      for (const part of [this.limit, this.award, this.blocked]) setHidden(part, true);
      return;
    }
    this.chips.update(conditionsOf(pod));
    const floor = pod.bounds?.floor ?? 0;
    const ceiling = pod.bounds?.ceiling ?? capacity ?? scale;
    setStyle(this.room, 'left', share(floor, scale));
    setStyle(this.room, 'width', share(Math.max(Math.min(ceiling, scale) - floor, 0), scale));
    setAttribute(this.room, 'data-open', ceiling > scale);
    setHidden(this.blocked, !(pod.blocked >= 1));
    setStyle(this.blocked, 'left', share(usage, scale));
    setStyle(this.blocked, 'width', share(Math.min(pod.blocked ?? 0, Math.max(scale - usage, 0)), scale));
    setHidden(this.limit, !(pod.limit > 0) || pod.limit > scale);
    setStyle(this.limit, 'left', share(pod.limit ?? 0, scale));
    setHidden(this.award, !(pod.award > 0));
    setStyle(this.award, 'left', share(pod.award ?? 0, scale));
    const parts = [`uses ${cpu(usage)} of ${pod.limit ? cpu(pod.limit) : 'no limit'}`];
    if (pod.declared && pod.declared !== pod.limit) parts.push(`declared ${cpu(pod.declared)}`);
    if (pod.award) parts.push(`award ${cpu(pod.award)}`);
    if (pod.bounds?.floor) parts.push(`floor ${cpu(pod.bounds.floor)}`);
    if (pod.bounds?.ceiling) parts.push(`ceiling ${cpu(pod.bounds.ceiling)}`);
    setText(this.numbers, parts.join(' · '));
  }
}

class Figure {
  constructor() {
    this.value = element('dd', {class: 'value'});
    this.rule = element('dd', {class: 'rule'});
    this.label = element('dt');
    this.root = element('div', {}, this.label, this.value, this.rule);
  }
  update({label, value, rule}) {
    setText(this.label, label);
    setText(this.value, value);
    setText(this.rule, rule);
  }
}

const ORDERS = {
  name: (a, b) => a.key.localeCompare(b.key, undefined, {numeric: true}),
  usage: (a, b) => b.usage - a.usage,
  blocked: (a, b) => b.blocked - a.blocked,
  limit: (a, b) => b.limit - a.limit,
};

export class NodeView {
  // whatIf(question) answers; redraw() draws again.
  constructor(whatIf, redraw) {
    this.market = new MarketView(byId('market'), byId('market-text'));
    this.whatIf = new WhatIf(whatIf);
    this.figures = new KeyedList(byId('figures'), () => new Figure());
    this.vessels = new KeyedList(byId('vessels'), item => new Vessel(item));
    this.notes = new KeyedList(byId('note-list'), () => {
      const root = element('li');
      return {root, update: ({text}) => setText(root, text)};
    });
    byId('find').addEventListener('input', redraw);
    byId('sort').addEventListener('change', redraw);
  }

  draw(state) {
    const data = state.data;
    const market = data.market ?? {};
    setText(byId('node-heading'), data.node || 'this machine');
    this.figures.update(figuresOf(data), figure => figure.label);
    this.market.draw({...data, pods: data.pods ?? [], market});
    this.drawVessels(data);
    this.whatIf.draw(data, state.at);
    const notes = (data.notes ?? []).map((text, i) => ({text, i}));
    this.notes.update(notes, note => note.i);
    setHidden(byId('notes'), notes.length === 0);
  }

  drawVessels(data) {
    const pods = (data.pods ?? []).map(pod => ({
      key: nameOf(pod), pod, usage: pod.usage ?? 0, blocked: pod.blocked ?? 0, limit: pod.limit ?? 0,
    }));
    const others = (data.others ?? []).map(other => ({
      key: other.name, other, usage: other.usage ?? 0, blocked: 0, limit: 0,
    }));
    // What is known of unmanaged work beyond those that are named.
    const named = others.reduce((sum, {usage}) => sum + usage, 0) +
        pods.reduce((sum, {pod, usage}) => sum + (pod.leftAlone ? usage : 0), 0);
    const rest = (data.market?.unmanagedUse ?? 0) - named;
    if (rest >= 1) {
      const key = others.length ? 'everything else' : 'everything that is not managed';
      others.push({key, other: {usage: rest}, usage: rest, blocked: 0, limit: 0});
    }
    const capacity = data.capacity ?? data.market?.capacity ?? 0;
    let scale = 1;
    for (const {pod, usage, limit} of [...pods, ...others]) {
      const least = Math.min(Math.max(limit, pod?.award ?? 0, pod?.declared ?? 0), capacity || Infinity);
      scale = Math.max(scale, usage, least);
    }
    scale *= 1.04;
    const wanted = byId('find').value.trim().toLowerCase();
    const order = ORDERS[byId('sort').value] ?? ORDERS.name;
    const shown = [...pods.sort(order), ...others.sort(ORDERS.usage)]
        .filter(item => item.key.toLowerCase().includes(wanted));
    for (const item of shown) Object.assign(item, {scale, capacity});
    this.vessels.update(shown, item => `${item.other ? 'other' : 'pod'} ${item.key}`);
    setHidden(byId('no-match'), shown.length > 0 || wanted === '');
  }
}

function figuresOf(data) {
  const market = data.market ?? {};
  const managed = (data.pods ?? []).filter(pod => !pod.leftAlone);
  const used = managed.reduce((sum, pod) => sum + (pod.usage ?? 0), 0);
  const blocked = managed.reduce((sum, pod) => sum + (pod.blocked ?? 0), 0);
  const bound = managed.filter(pod => pod.constrained).length;
  return [
    {label: 'To share', value: cpu(market.capacity), rule: `of ${cpu(data.capacity)}, all CPUs`},
    {label: 'Managed pods use', value: cpu(used), rule: `${managed.length} pods`},
    {label: 'Others use', value: cpu(market.unmanagedUse ?? 0), rule: 'not managed'},
    {label: 'Price', value: price(market),
     rule: market.scarce ? 'scarce: some pod could use more than its award' : 'not scarce'},
    {label: 'Held back', value: `${Math.round(blocked)} ms/s`, rule: 'by limits, all managed pods'},
    {label: 'Bound', value: bound === 1 ? '1 pod' : `${bound} pods`, rule: 'for pods that matter more'},
    {label: 'Welfare', value: percent(market.welfare), rule: 'of what could be used, weighted mean'},
  ];
}
