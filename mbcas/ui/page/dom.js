// Making and changing elements. Names and messages in the data may be anybody's: they become text
// nodes and values of harmless attributes, never markup, and characters that are invisible or turn
// the direction of the text around are shown as escapes.

const SVG = 'http://www.w3.org/2000/svg';
const LONGEST = 300; // characters of a name or a message

// Control characters, and those that format text without being seen.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function clean(value) {
  const text = String(value ?? '');
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
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
export function setText(target, text) {
  const shown = clean(text);
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

// One child for each item, in their order; a child stays the same as long as its key is there.
export class KeyedList {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make; // item => {root, update(item)}
    this.children = new Map();
  }
  update(items, keyOf) {
    const kept = new Set();
    let place = this.parent.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      kept.add(key);
      let child = this.children.get(key);
      if (!child) {
        child = this.make(item);
        this.children.set(key, child);
      }
      child.update(item);
      if (child.root === place) {
        place = place.nextElementSibling;
      } else {
        this.parent.insertBefore(child.root, place);
      }
    }
    for (const [key, child] of this.children) {
      if (kept.has(key)) continue;
      child.root.remove();
      this.children.delete(key);
    }
  }
}
