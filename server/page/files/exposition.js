// Parses Prometheus' text format, as returned by /metrics.

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = {"\\\\": "\\", "\\\"": "\"", "\\n": "\n"};
const unescaped = text => text.replace(/\\[\\"n]/g, found => ESCAPES[found]);

// Returns {name: [{labels, value}]} for all sample lines.
export function parseExposition(text) {
  const series = {};
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : SAMPLE.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] || "").matchAll(LABEL)) labels[name] = unescaped(value);
    const value = found[3] === "+Inf" ? Infinity : Number(found[3]);
    (series[found[1]] ||= []).push({labels, value});
  }
  return series;
}

const matches = (labels, wanted) => Object.entries(wanted || {}).every(([name, value]) => labels[name] === value);

export function total(series, name, wanted) {
  return (series[name] || []).filter(one => matches(one.labels, wanted)).reduce((sum, one) => sum + one.value, 0);
}

// Returns the sum for each value of a label.
export function totalsBy(series, name, label, wanted) {
  const totals = {};
  for (const one of series[name] || []) {
    if (matches(one.labels, wanted)) totals[one.labels[label]] = (totals[one.labels[label]] || 0) + one.value;
  }
  return totals;
}

// Returns {bounds, counts, sum}: the sum of all histograms with this name. Counts are cumulative.
export function histogram(series, name, wanted) {
  const byBound = new Map();
  for (const {labels, value} of series[`${name}_bucket`] || []) {
    if (!matches(labels, wanted)) continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    byBound.set(bound, (byBound.get(bound) || 0) + value);
  }
  const bounds = [...byBound.keys()].sort((a, b) => a - b);
  return {bounds, counts: bounds.map(bound => byBound.get(bound)), sum: total(series, `${name}_sum`, wanted)};
}
