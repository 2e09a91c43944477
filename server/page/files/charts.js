// Small charts.
import {drawing, element} from "./drawing.js";

const WIDTH = 400, HEIGHT = 170, LEFT = 52, RIGHT = 8, TOP = 8, BOTTOM = 22;
const rounded = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});
const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

export function number(value) { return value === null || !Number.isFinite(value) ? "–" : rounded.format(value); }

export const count = value => whole.format(value);

export function seconds(value) {
  if (value === null) return "–";
  if (value >= 1) return `${number(value)} s`;
  return value >= 0.001 || value === 0 ? `${number(value * 1000)} ms` : `${number(value * 1e6)} µs`;
}

export function bytes(value) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (value >= size) return `${number(value / size)} ${unit}`;
  }
  return `${number(value)} B`;
}

export const percent = share => share === null ? "–" : `${number(100 * share)} %`;

// The smallest 1, 2 or 5 times a power of ten that is at least `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find(factor => factor * power >= value * 0.9999) * power;
}

// Scales are {ticks, share}: `share` maps a value to 0 … 1.
function linear(values) {
  const largest = Math.max(...values, 0);
  const most = largest > 0 ? roundUp(largest) : 1;
  return {ticks: [0, most / 2, most], share: value => value / most};
}

// From one power of ten to another; values of 0 or less are at the bottom.
function logarithmic(values) {
  const positive = values.filter(value => value > 0);
  if (positive.length === 0) return linear([1]);
  const least = Math.floor(Math.log10(Math.min(...positive))), most = Math.max(Math.ceil(Math.log10(Math.max(...positive))), least + 1);
  const step = Math.ceil((most - least) / 4);
  const ticks = [];
  for (let power = least; power <= most; power += step) ticks.push(10 ** power);
  return {ticks, share: value => value > 0 ? Math.max(0, (Math.log10(value) - least) / (most - least)) : 0};
}

function frame({ticks, share}, show, name) {
  const svg = drawing("svg", document.createDocumentFragment(), {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": name});
  const y = value => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share(value));
  for (const tick of ticks) {
    drawing("path", svg, {d: `M${LEFT} ${y(tick)}H${WIDTH - RIGHT}`, class: "axis"});
    drawing("text", svg, {x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end"}, show(tick));
  }
  return {svg, y};
}

function legend(place, lines, show) {
  const list = element("ul", place, null, {class: "legend"});
  lines.forEach((line, i) => {
    const item = element("li", list);
    const mark = drawing("svg", item, {viewBox: "0 0 22 8", class: "mark", "aria-hidden": "true"});
    drawing("path", mark, {d: "M0 4H22", class: `line line-${i}`});
    item.append(` ${line.name} `);
    element("b", item, show(line.values.length ? line.values[line.values.length - 1] : null));
  });
}

// The path of a line; nulls are gaps.
function pathOf(values, x, y) {
  let pen = "M";
  return values.map((value, i) => {
    if (value === null) {
      pen = "M";
      return "";
    }
    const to = `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
    return to;
  }).join("");
}

// Lines over time: `ages` contains the seconds since each value was taken; the chart shows the last `span` seconds; `show`
// formats a value. `log` selects a logarithmic scale.
export function lineChart(place, {lines, ages, span, show, log}) {
  const values = lines.flatMap(line => line.values).filter(value => value !== null);
  const now = lines.map(line => `${line.name} ${show(line.values.length ? line.values[line.values.length - 1] : null)}`);
  const {svg, y} = frame((log ? logarithmic : linear)(values), show, `${place.dataset.name}, now: ${now.join(", ")}`);
  const x = age => WIDTH - RIGHT - (WIDTH - LEFT - RIGHT) * age / span;
  for (let age = 0; age <= span; age += 60) {
    drawing("text", svg, {x: x(age), y: HEIGHT - 6, "text-anchor": age === 0 ? "end" : age === span ? "start" : "middle"},
      age === 0 ? "now" : `${age / 60} min`);
  }
  lines.forEach((line, i) => {
    drawing("path", svg, {d: pathOf(line.values, at => x(ages[at]), y), class: `line line-${i}`});
  });
  place.replaceChildren(svg);
  legend(place, lines, show);
}

// Draws a bar for each of [{name, value}].
export function barChart(place, bars) {
  const sum = bars.reduce((all, bar) => all + bar.value, 0);
  const {svg, y} = frame(linear(bars.map(bar => bar.value / sum)), percent, `${place.dataset.name}: ${bars.filter(bar => bar.value > 0)
    .map(bar => `${bar.name}: ${percent(bar.value / sum)}`).join(", ")}`);
  const step = (WIDTH - LEFT - RIGHT) / bars.length;
  const every = Math.ceil(bars.length / 9);
  bars.forEach((bar, i) => {
    const top = y(bar.value / sum);
    const rect = drawing("rect", svg, {x: LEFT + step * i + 1, y: top, width: Math.max(step - 2, 1), height: y(0) - top,
      class: "bar"});
    drawing("title", rect, {}, `${bar.name}: ${count(bar.value)}`);
    if (i % every === 0) {
      drawing("text", svg, {x: LEFT + step * (i + 0.5), y: HEIGHT - 6, "text-anchor": "middle"}, bar.name);
    }
  });
  place.replaceChildren(svg);
}

// A bar in a table row, for a share from 0 to 1.
export function rowBar(cell, share) {
  const svg = drawing("svg", cell, {viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "row-bar", "aria-hidden": "true"});
  drawing("rect", svg, {width: 100 * Math.min(Math.max(share, 0), 1), height: 10, class: "bar"});
}

// A table of rows, of which the first is the header. A cell is a text, or a function that fills the cell.
export function table(place, [head, ...rows]) {
  const made = element("table");
  const titles = element("tr", element("thead", made));
  for (const title of head) element("th", titles, title, {scope: "col"});
  const body = element("tbody", made);
  for (const row of rows) {
    const line = element("tr", body);
    row.forEach((content, i) => {
      const cell = element(i === 0 ? "th" : "td", line, typeof content === "function" ? null : content,
        i === 0 ? {scope: "row"} : {});
      if (typeof content === "function") content(cell);
    });
  }
  place.replaceChildren(made);
  markScrolling(place);
}

// Makes content that overflows scrollable with the keyboard; other content is not a tab stop.
export function markScrolling(place) { place.tabIndex = place.scrollWidth > place.clientWidth ? 0 : -1; }
