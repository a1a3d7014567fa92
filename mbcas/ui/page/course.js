// What was seen since the page began: states of the node, oldest first. It is bounded; the oldest
// states go first.

import {nameOf} from './format.js';

const MOST_STATES = 7200; // two hours, one each second
const MOST_CHARACTERS = 48 << 20;

export class Course {
  constructor() {
    this.states = [];
    this.characters = 0;
    this.dropped = 0; // so that a moment keeps its number when older ones go
  }

  // False: it is none, or not a later one.
  add(state) {
    if (!state) return false;
    const last = this.states.at(-1);
    if (last && state.at <= last.at) {
      // A clock that was set back by seconds orders itself again; one by more begins a new course.
      if (last.at - state.at < 10000) return false;
      this.clear();
    }
    this.states.push(state);
    this.characters += state.characters;
    while (this.states.length > 1 &&
           (this.states.length > MOST_STATES || this.characters > MOST_CHARACTERS)) {
      this.characters -= this.states.shift().characters;
      ++this.dropped;
    }
    return true;
  }

  clear() {
    this.dropped += this.states.length;
    this.states = [];
    this.characters = 0;
  }

  get first() { return this.dropped; }
  get last() { return this.dropped + this.states.length - 1; }
  get(number) { return this.states[number - this.dropped]; }

  // Of one pod: {at, pod} for each state that has it, and {at, pod: null} where one does not.
  of(key) {
    return this.states.map((state, i) =>
      ({at: state.at, number: this.dropped + i, pod: state.byKey.get(key) ?? null}));
  }

  // As `mbcas ui FILE` reads it: a line for each state.
  lines() { return this.states.map(({data}) => JSON.stringify(data)); }
}

const MOST_PICTURES = 7200;
const MOST_REFERENCES = 4 << 20; // to nodes, over all pictures

// What was seen of a cluster: its pictures, oldest first. A node that is as it was before is kept
// once, however many pictures it is in.
export class Pictures {
  constructor() {
    this.states = []; // {at, nodes, namespaces, notes}
    this.dropped = 0;
    this.references = 0;
    this.newest = new Map(); // by name: {node, text}
  }

  // Of a recording every picture after the first one tells only what has changed.
  add(picture, at, changesOnly) {
    const last = this.states.at(-1);
    if (!Number.isFinite(at) || last && at < last.at) return;
    const now = changesOnly && last ? new Map(this.newest) : new Map();
    for (const node of picture.nodes ?? []) {
      const text = JSON.stringify(node);
      const before = this.newest.get(node.node);
      now.set(node.node, before?.text === text ? before : {node, text});
    }
    for (const name of picture.gone ?? []) now.delete(name);
    this.newest = now;
    const state = {
      at, nodes: [...now.values()].map(({node}) => node),
      namespaces: picture.namespaces ?? [], notes: picture.notes ?? [],
    };
    this.states.push(state);
    this.references += state.nodes.length;
    while (this.states.length > 1 &&
           (this.states.length > MOST_PICTURES || this.references > MOST_REFERENCES)) {
      this.references -= this.states.shift().nodes.length;
      ++this.dropped;
    }
  }

  get first() { return this.dropped; }
  get last() { return this.dropped + this.states.length - 1; }
  get(number) { return this.states[number - this.dropped]; }

  // As `mbcas ui FILE` reads it: a line for each picture.
  lines() {
    let before = new Map();
    return this.states.map(({at, nodes, namespaces, notes}) => {
      const now = new Map(nodes.map(node => [node.node, node]));
      const cluster = {
        time: new Date(at).toISOString(),
        nodes: nodes.filter(node => before.get(node.node) !== node),
        namespaces, notes,
      };
      const gone = [...before.keys()].filter(name => !now.has(name));
      if (gone.length) cluster.gone = gone;
      before = now;
      return JSON.stringify({cluster});
    });
  }
}

// Null: it is none.
export function readState(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    return null;
  }
  const at = Date.parse(data?.time);
  if (!Number.isFinite(at)) return null;
  const byKey = new Map();
  for (const pod of data.pods ?? []) byKey.set(nameOf(pod), pod);
  return {at, data, byKey, characters: text.length};
}

// A recording of what is in these lines.
export function recordingOf(title, lines) {
  return `${[JSON.stringify({mbcasRecording: 1, title}), ...lines].join('\n')}\n`;
}

// Where what a pod should have, or has, became another: {at, number, from, to, why}.
export function decisionsIn(entries) {
  const found = [];
  let before = null;
  for (const {at, number, pod} of entries) {
    if (!pod) continue;
    const now = pod.desired ?? pod.limit;
    if (before !== null && now !== null && now !== before) {
      found.push({at, number, from: before, to: now, why: pod.reason || pod.leftAlone || ''});
    }
    before = now ?? before;
  }
  return found;
}
