// Numbers and times as text.

export function cpu(millicores) {
  return millicores === null || millicores === undefined ? '–' : `${Math.round(millicores)}m`;
}

// "1.25 CPU"
export function cores(millicores) {
  return `${(millicores / 1000).toLocaleString([], {maximumFractionDigits: 2})} CPU`;
}

export function price(market) {
  if (market.price === null || market.price === undefined) return 'overloaded';
  return market.price === 0 ? '0' : market.price.toPrecision(3);
}

export function percent(share) {
  return share === null || share === undefined ? '–' : `${Math.round(share * 100)} %`;
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString([], {hour12: false});
}

// "1 min 20 s"
export function duration(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function nameOf(pod) {
  return pod.namespace ? `${pod.namespace}/${pod.pod}` : pod.pod;
}
