// The view of a pod: how it came to its limit, and its course.

import {KeyedList, byId, element, setHidden, setText} from './dom.js';
import {decisionsIn} from './course.js';
import {clock, cpu} from './format.js';
import {chips, conditionsOf} from './node.js';
import {Plot} from './plot.js';

const MOST_DECISIONS = 50;

class Decision {
  constructor(item, pick) {
    this.button = element('button', {type: 'button', class: 'link'});
    this.button.addEventListener('click', () => pick(this.number));
    this.change = element('b');
    this.why = element('span');
    this.root = element('li', {}, this.button, ' ', this.change, element('br'), this.why);
  }
  update({at, number, from, to, why}) {
    this.number = number;
    setText(this.button, clock(at));
    setText(this.change, `${to > from ? '▲' : '▼'} ${cpu(from)} to ${cpu(to)}`);
    setText(this.why, why);
  }
}

export class PodView {
  // explain(state, pod) answers with what `mbcas explain` says; pick(number) shows that moment.
  constructor(explain, pick) {
    this.explain = explain;
    this.cpu = new Plot(byId('cpu-plot'), [
      {name: 'use', kind: 'use', area: true, value: pod => pod.usage ?? null},
      {name: 'limit', kind: 'limit', stepped: true, value: pod => pod.limit ?? null},
      {name: 'award', kind: 'award', stepped: true, value: pod => pod.award ?? null},
      {name: 'declared', kind: 'declared', stepped: true, value: pod => pod.declared ?? null},
    ], cpu, pick);
    this.blocked = new Plot(byId('blocked-plot'), [
      {name: 'held back', kind: 'blocked', area: true, value: pod => pod.blocked ?? null},
    ], value => `${Math.round(value)} ms/s`, pick);
    const share = part => (part === null || part === undefined ? null : part * 100);
    this.waiting = new Plot(byId('wait-plot'), [
      {name: 'some thread waits', kind: 'pressure', area: true, value: pod => share(pod.pressure)},
      {name: 'not for its own limit', kind: 'contention', value: pod => share(pod.contention)},
    ], value => `${Math.round(value)} %`, pick);
    this.decisions = new KeyedList(byId('decisions'), item => new Decision(item, pick));
    this.asked = null;
    this.pending = null;
    this.busy = false;
  }

  draw(course, number, key) {
    const state = course.get(number);
    const pod = state.byKey.get(key);
    setText(byId('pod-heading'), key);
    const entries = course.of(key);
    const found = decisionsIn(entries);
    this.cpu.draw(entries, found, number);
    this.blocked.draw(entries, [], number);
    // Without PSI the kernel does not tell it.
    setHidden(byId('wait-plot'), !entries.some(({pod: seen}) => Number.isFinite(seen?.pressure)));
    this.waiting.draw(entries, [], number);
    this.decisions.update(found.slice(-MOST_DECISIONS).reverse(), item => item.number);
    setHidden(byId('no-decisions'), found.length > 0);
    const summary = byId('pod-summary');
    if (!pod) {
      if (this.key !== `none ${key}`) summary.replaceChildren('It was not there at this moment.');
      this.key = `none ${key}`;
      return;
    }
    const conditions = JSON.stringify(conditionsOf(pod));
    if (this.key !== key + conditions) {
      this.key = key + conditions;
      summary.replaceChildren(...chips(conditionsOf(pod)));
    }
    this.ask(state, pod, key);
  }

  // One question at a time; of those that come meanwhile the last one is asked next.
  async ask(state, pod, key) {
    const mark = `${state.at} ${key}`;
    if (this.asked === mark) return;
    if (this.busy) {
      this.pending = [state, pod, key];
      return;
    }
    this.busy = true;
    this.asked = mark;
    try {
      this.show(await this.explain(state.data, pod));
      setHidden(byId('chain-note'), true);
    } catch (error) {
      setText(byId('chain-note'), `The steps of this moment cannot be had: ${error.message}`);
      setHidden(byId('chain-note'), false);
      this.asked = null;
    }
    this.busy = false;
    const next = this.pending;
    this.pending = null;
    if (next) this.ask(...next);
  }

  show(explanation) {
    const steps = JSON.stringify([explanation.steps, explanation.more]);
    if (steps === this.steps) return;
    this.steps = steps;
    const sections = [];
    for (const step of explanation.steps ?? []) {
      if (sections.at(-1)?.title !== step.section) sections.push({title: step.section, steps: []});
      sections.at(-1).steps.push(step);
    }
    const shown = sections.map(({title, steps: own}) => element('li', {},
        element('h4', {}, title),
        element('dl', {}, ...own.map(({label, value, rule}) => element('div', {},
            element('dt', {}, label), element('dd', {class: 'value'}, value),
            element('dd', {class: 'rule'}, rule))))));
    if (explanation.more?.length) {
      shown.push(element('li', {}, element('h4', {}, 'For it to get more'),
          element('ul', {}, ...explanation.more.map(text => element('li', {}, text)))));
    }
    byId('chain').replaceChildren(...shown);
  }
}
