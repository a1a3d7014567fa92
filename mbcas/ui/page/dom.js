// Making and changing elements. Names and messages in the data may be anybody's: they become text
// nodes and values of harmless attributes, never markup, and characters that are invisible or turn
// the direction of the text around are shown as escapes.

const SVG = 'http://www.w3.org/2000/svg';
const LONGEST = 300; // characters of a name or a message
// Of a sentence that quotes others and then says what to do.
export const LONGEST_NOTE = 1500;

// Control characters, and those that format text without being seen.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function clean(value, longest = LONGEST) {
  const text = String(value ?? '');
  const shown = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return shown.replace(UNSEEN, c => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`);
}

export const byId = id => document.getElementById(id);

// element('p', {class: 'note'}, 'text', child, ...)
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  for (const child of children) {
    made.append(child instanceof Node ? child : clean(child));
  }
  return made;
}

// Only what differs is changed, so that focus, selections and screen readers are left alone.
export function setText(target, text, longest = LONGEST) {
  const shown = clean(text, longest);
  if (target.textContent !== shown) target.textContent = shown;
}
export function setHidden(target, hidden) {
  if (target.hidden !== hidden) target.hidden = hidden;
}
export function setAttribute(target, name, value) {
  const text = String(value);
  if (target.getAttribute(name) !== text) target.setAttribute(name, text);
}
export function setStyle(target, name, value) {
  if (target.style[name] !== value) target.style[name] = value;
}

// Which of the numbers can stay where they are so that as few as possible of the others have to move
// for all of them to ascend: a longest ascending part. Negative ones are none of it.
export function ascending(numbers) {
  const ends = [];    // where the best part of each length ends
  const before = [];  // the one before each in its part
  numbers.forEach((number, i) => {
    if (number < 0) return;
    let from = 0;
    let to = ends.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (numbers[ends[middle]] < number) from = middle + 1;
      else to = middle;
    }
    before[i] = from > 0 ? ends[from - 1] : -1;
    ends[from] = i;
  });
  const stays = new Set();
  for (let i = ends.length ? ends.at(-1) : -1; i >= 0; i = before[i]) stays.add(i);
  return stays;
}

// One child for each item, in their order; a child stays the same as long as its key is there, and is
// moved only if it must be.
export class KeyedList {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make; // item => {root, update(item)}
    this.children = new Map(); // in their order
  }
  update(items, keyOf) {
    let place = 0;
    for (const child of this.children.values()) child.place = place++;
    const children = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const child = this.children.get(key) ?? {shown: this.make(item), place: -1};
      children.set(key, child);
      child.shown.update(item);
    }
    for (const [key, {shown}] of this.children) {
      if (!children.has(key)) shown.root.remove();
    }
    this.children = children;
    const wanted = [...children.values()];
    const stays = ascending(wanted.map(child => child.place));
    let next = null;
    for (let i = wanted.length - 1; i >= 0; --i) {
      const {root} = wanted[i].shown;
      if (!stays.has(i)) this.parent.insertBefore(root, next);
      next = root;
    }
  }
}
