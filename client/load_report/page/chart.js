"use strict";
const byId = id => document.getElementById(id);

// Text is never parsed as HTML.
function element(name, parent, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

function drawing(name, parent, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const colour = i => `var(--c${i % 8})`;
const extent = values => [Math.min(...values), Math.max(...values)];

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  return String(Number(value.toFixed(digits)));
}

// Steps of 1, 2 or 5 times a power of ten that cover the values: at most about `count`.
function linearTicks([least, most], count) {
  const raw = Math.max((most - least) / count, 1e-9);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(factor => factor * power >= raw) * power;
  const ticks = [];
  for (let i = Math.floor(least / step); i <= Math.ceil(most / step); ++i) ticks.push(i * step);
  return ticks.length > 1 ? ticks : [ticks[0], ticks[0] + step];
}

// 1, 2 and 5 times powers of ten, or only powers if these would be too many.
function logTicks([least, most], count) {
  for (const factors of [[1, 2, 5], [1]]) {
    const all = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); ++power) {
      for (const factor of factors) all.push(factor * 10 ** power);
    }
    const first = all.findLastIndex(tick => tick <= least * 1.0001);
    const last = all.findIndex(tick => tick >= most * 0.9999);
    const ticks = all.slice(Math.max(first, 0), (last < 0 ? all.length : last) + 1);
    if (ticks.length <= count || factors.length === 1) {
      return ticks.length > 1 ? ticks : [all[Math.max(first - 1, 0)], ...ticks];
    }
  }
}

// {ticks, at}: `at` maps a value to 0 … 1.
function scaleOf(values, {log, zero, ticks}, count) {
  const range = ticks ? [ticks[0].value, ticks[ticks.length - 1].value] : extent(zero ? [0, ...values] : values);
  const marks = ticks || (log ? logTicks : linearTicks)(range, count).map(value => ({value, text: short(value)}));
  const turn = log ? Math.log : value => value;
  const [least, most] = [turn(marks[0].value), turn(marks[marks.length - 1].value)];
  return {marks, at: value => (turn(value) - least) / (most - least || 1)};
}

// Draws lines into `parent`, at its full width. `series` are {name, colour, dash, points: [{x, y, text}], marks: bool}.
function chart(parent, {series, x, y, height = 260}) {
  const drawn = series.filter(one => one.points.length > 0);
  if (drawn.length === 0) {
    element("p", parent, "Nothing was measured.", {class: "note"});
    return;
  }
  const legend = element("div", parent, null, {class: "legend"});
  for (const one of drawn) {
    const item = element("span", legend);
    element("i", item, null, {style: `border-color:${one.colour};border-top-style:${one.dash ? "dashed" : "solid"}`});
    item.append(one.name);
  }
  const width = Math.max(260, Math.min(parent.clientWidth, 1000));
  const left = 52, right = 30, top = 28, bottom = 36;
  const svg = drawing("svg", parent, {width, height, role: "img", "aria-label": `${y.title} by ${x.title}`});
  const points = drawn.flatMap(one => one.points);
  const xs = scaleOf(points.map(point => point.x), x, Math.floor(width / 90));
  const ys = scaleOf(points.map(point => point.y), y, 8);
  const px = value => left + xs.at(value) * (width - left - right);
  const py = value => height - bottom - ys.at(value) * (height - top - bottom);
  for (const mark of ys.marks) {
    drawing("line", svg, {class: "grid", x1: left, x2: width - right, y1: py(mark.value), y2: py(mark.value)});
    drawing("text", svg, {x: left - 6, y: py(mark.value) + 4, "text-anchor": "end"}, mark.text);
  }
  for (const mark of xs.marks) {
    drawing("line", svg, {class: "grid", x1: px(mark.value), x2: px(mark.value), y1: height - bottom, y2: height - bottom + 4});
    drawing("text", svg, {x: px(mark.value), y: height - bottom + 17, "text-anchor": "middle"}, mark.text);
  }
  drawing("text", svg, {x: 0, y: 11}, y.title);
  drawing("text", svg, {x: width - 2, y: height - 4, "text-anchor": "end"}, x.title);
  for (const one of drawn) {
    const path = one.points.map((point, i) => `${i ? "L" : "M"}${px(point.x).toFixed(1)} ${py(point.y).toFixed(1)}`).join("");
    drawing("path", svg, {class: "line", d: path, stroke: one.colour, "stroke-dasharray": one.dash ? "6 4" : "none"});
    if (!one.marks && one.points.length > 1) continue;
    for (const point of one.points) {
      const dot = drawing("circle", svg, {cx: px(point.x), cy: py(point.y), r: 3.5, fill: one.colour});
      drawing("title", dot, {}, `${one.name}: ${point.text || short(point.y)}`);
    }
  }
}

// A table of texts, or of {text, class}; the first row is the header.
function table(parent, rows, attributes) {
  const made = element("table", parent, null, attributes);
  rows.forEach((row, i) => {
    const line = element("tr", made);
    for (const cell of row) {
      const {text, kind} = typeof cell === "object" && cell !== null ? cell : {text: cell};
      element(i === 0 ? "th" : "td", line, text, kind ? {class: kind} : {});
    }
  });
  return made;
}
