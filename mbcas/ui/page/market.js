// Supply and demand of a node: what its managed pods would take at each price, and what there is.

import {svg, setText} from './dom.js';
import {cpu, price as priceText} from './format.js';

const HEIGHT = 250;
const EDGE = {left: 12, right: 12, top: 22, bottom: 34};
const STEPS = 80;

// What a managed pod would use, as the law sees it: a helped pod what it claims, a bound one what it
// would have if it were not, and another one what it uses, or its award where that is more.
export function wantOf(pod, market) {
  if (pod.claim) return Math.min(pod.claim, market.capacity ?? Infinity);
  const use = (pod.containers ?? []).reduce((sum, container) => sum + (container.use ?? 0), 0);
  const most = Math.max(pod.award ?? 0, use);
  if (!pod.constrained) return most;
  return Math.max(most, Math.min(pod.wanted ?? 0, pod.bounds?.ceiling ?? Infinity));
}

// Of each managed pod: what it would use, and how much of the CPU a unit of price is worth to it. At
// the market's price a pod that is short takes its award: that says what its weight is in units of
// that price. The other pods' weights follow from their requests.
function demandsOf(state) {
  const market = state.market;
  const demands = [];
  const ratios = [];
  for (const pod of state.pods) {
    if (pod.leftAlone) continue;
    const award = pod.award ?? 0;
    const most = wantOf(pod, market);
    if (most <= 0) continue;
    const tight = market.price > 0 && award > 0 && award < 0.98 * most;
    if (tight) ratios.push(market.price * award / (pod.weight || 1));
    demands.push({most, tight, weight: pod.weight || 1, bid: tight ? market.price * award : null});
  }
  ratios.sort((a, b) => a - b);
  // The kernel's weights are 1024 for each requested CPU, requests are 1000.
  const ratio = ratios.length ? ratios[ratios.length >> 1] : 1.024;
  for (const demand of demands) {
    demand.bid ??= demand.weight * ratio;
    // A pod that has all that it could use does not give any of it up at the market's price.
    if (!demand.tight) demand.bid = Math.max(demand.bid, (market.price ?? 0) * demand.most);
  }
  return demands;
}

export function demandAt(demands, price) {
  let sum = 0;
  for (const {most, bid} of demands) sum += price > 0 ? Math.min(most, bid / price) : most;
  return sum;
}

// What goes to consumers that are not managed: what they use, and where CPU is scarce no more than
// the market leaves to them. They may use more than that for as long as a pod does not take its
// award.
function othersTake(market, demands) {
  const use = market.unmanagedUse ?? 0;
  if (!market.wholeMachine) return 0; // it is off the capacity already
  if (!(market.price > 0)) return use;
  return Math.min(use, Math.max(market.capacity - demandAt(demands, market.price), 0));
}

export class MarketView {
  constructor(figure, text) {
    this.text = text;
    this.root = svg('svg', {role: 'img', 'aria-labelledby': text.id});
    figure.append(this.root);
    this.figure = figure;
    new ResizeObserver(() => this.state && this.draw(this.state)).observe(figure);
  }

  draw(state) {
    this.state = state;
    const market = state.market ?? {};
    const demands = demandsOf(state);
    const all = demandAt(demands, 0);
    const others = othersTake(market, demands);
    const supply = Math.max((market.capacity ?? 0) - others, 0);
    setText(this.text, this.words(market, supply, all, others));
    const width = Math.max(this.figure.clientWidth - 32, 240);
    this.root.replaceChildren();
    this.root.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.root.setAttribute('height', HEIGHT);
    if (demands.length === 0 || !market.capacity) return;

    const most = Math.max(supply, all, market.capacity) * 1.06;
    // The price at which half of the demand is left, or twice the market's.
    let top = 2 * (market.price ?? 0);
    if (!(top > 0)) {
      top = 1e-3;
      while (demandAt(demands, top) > all / 2 && top < 1e6) top *= 1.2;
    }
    const x = amount => EDGE.left + amount / most * (width - EDGE.left - EDGE.right);
    const y = price => HEIGHT - EDGE.bottom - Math.min(price / top, 1) * (HEIGHT - EDGE.top - EDGE.bottom);
    const floor = y(0);

    const points = [];
    for (let i = 0; i <= STEPS; ++i) {
      const price = top * i / STEPS;
      points.push(`${x(demandAt(demands, price)).toFixed(1)},${y(price).toFixed(1)}`);
    }
    // What others use is not on offer.
    if (others > 0) {
      this.root.append(svg('rect', {
        class: 'others', x: x(supply), y: EDGE.top,
        width: Math.max(x(market.capacity) - x(supply), 1), height: floor - EDGE.top,
      }));
    }
    this.root.append(
        svg('line', {class: 'axis', x1: EDGE.left, y1: floor, x2: width - EDGE.right, y2: floor}),
        svg('polyline', {class: 'demand', points: points.join(' ')}),
        svg('line', {class: 'supply', x1: x(supply), y1: EDGE.top, x2: x(supply), y2: floor}));
    const label = (text, at, height, anchor, name) => this.root.append(svg('text',
        {x: Math.min(Math.max(at, 4), width - 4), y: height, 'text-anchor': anchor, class: name}, text));
    label('0', EDGE.left, floor + 16, 'start', 'tick');
    label(`${cpu(all)} asked for at price 0`, x(all), floor + (all > 0.7 * most ? 30 : 16),
        all > most / 2 ? 'end' : 'start', 'demand-text');
    label(`supply ${cpu(supply)}`, x(supply) - 4, EDGE.top - 6, 'end', 'supply-text');
    if (market.price > 0) {
      const at = y(market.price);
      this.root.append(
          svg('line', {class: 'price', x1: EDGE.left, y1: at, x2: width - EDGE.right, y2: at}),
          svg('circle', {class: 'price', cx: x(demandAt(demands, market.price)), cy: at, r: 5}));
      label(`price ${priceText(market)}`, EDGE.left + 4, at - 6, 'start', 'price-text');
    } else {
      this.root.append(svg('circle', {class: 'price', cx: x(all), cy: floor, r: 5}));
      label(market.price === 0 ? 'price 0' : 'overloaded', EDGE.left + 4, floor - 8, 'start', 'price-text');
    }
  }

  words(market, supply, all, taken) {
    if (!market.capacity) return 'There is no market here.';
    const others = taken > 0 ? ` (of ${cpu(market.capacity)}, ${cpu(taken)} go to others)` : '';
    if (market.price === null || market.price === undefined) {
      return `Not even the floors fit into the ${cpu(supply)} that there are${others}, so no price clears the market.`;
    }
    if (market.price === 0) {
      return `Supply is ${cpu(supply)}${others}, and all managed pods together would use ${cpu(all)}. ` +
          'Every pod has what it could use, so the price is 0.';
    }
    return `Supply is ${cpu(supply)}${others}, and the managed pods would use ${cpu(all)}. At price ` +
        `${priceText(market)} (weight for each millicore) they take what there is.`;
  }
}
