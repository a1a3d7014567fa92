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

  // As `mbcas ui FILE` reads it.
  text(title) {
    const lines = [JSON.stringify({mbcasRecording: 1, title})];
    for (const state of this.states) lines.push(JSON.stringify(state.data));
    return `${lines.join('\n')}\n`;
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
