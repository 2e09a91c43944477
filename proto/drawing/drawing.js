// Elements, drawings and attention maps for the pages of the server and of attendant-client inspect.

// Text is never parsed as HTML.
export function element(name, parent, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

export function drawing(name, parent, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

export const byId = id => document.getElementById(id);

// Returns the red, green and blue of a style sheet variable.
export function colour(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
}

export const mix = (a, b, t) => a.map((value, i) => Math.round(value + (b[i] - value) * t));
export const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

// Returns the function from 0..1 to the colors of maps.
export function ramp() {
  const stops = ["--ramp-0", "--ramp-1", "--ramp-2"].map(colour);
  return t => t < 0.5 ? mix(stops[0], stops[1], 2 * t) : mix(stops[1], stops[2], 2 * t - 1);
}

// A map has `side` × `side` cells, rows of queries and columns of keys; `level(row, column)`, from 0 to 1, is the color of a cell.
export function paintMap(canvas, side, level) {
  const colours = ramp();
  const table = Array.from({length: 256}, (_, step) => colours(step / 255));
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const image = context.createImageData(side, side);
  for (let i = 0; i < side * side; ++i) {
    const step = Math.round(255 * Math.min(Math.max(level(Math.floor(i / side), i % side), 0), 1));
    image.data.set(table[step], 4 * i);
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// Maximum side length of a map with readable labels.
export const MOST_LABELS = 48;
const MOST_LETTERS = 16;

function widthOf(labels) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "12px system-ui, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif";
  return Math.ceil(Math.max(...labels.map(label => context.measureText(label).width)));
}

function shortened(label) {
  const letters = [...label];
  return letters.length > MOST_LETTERS ? letters.slice(0, MOST_LETTERS - 1).join("") + "…" : label;
}

// Draws a map with the label of each query at its row and of each key at its column. Returns the drawing, of fixed size.
export function labelledMap(place, labels, level, name) {
  const side = labels.length;
  const cell = side <= 10 ? 40 : side <= 20 ? 26 : 17;
  const shown = labels.map(shortened);
  const longest = widthOf(shown);
  const left = longest + 8;
  const top = Math.ceil(0.87 * longest) + 14;  // labels are rotated by 60°
  const width = left + side * cell + Math.ceil(longest / 2), height = top + side * cell;
  const svg = drawing("svg", place, {width, height, viewBox: `0 0 ${width} ${height}`, class: "map", role: "img",
    "aria-label": name});
  const colours = ramp();
  for (let row = 0; row < side; ++row) {
    const middle = top + (row + 0.5) * cell;
    drawing("text", svg, {x: left - 6, y: middle + 4, "text-anchor": "end"}, shown[row]);
    const x = left + (row + 0.5) * cell;
    drawing("text", svg, {x: x + 4, y: top - 6, transform: `rotate(-60 ${x + 4} ${top - 6})`}, shown[row]);
    for (let column = 0; column < side; ++column) {
      drawing("rect", svg, {x: left + column * cell, y: top + row * cell, width: cell, height: cell,
        fill: css(colours(Math.min(Math.max(level(row, column), 0), 1))), "data-row": row, "data-column": column});
    }
  }
  return svg;
}

// Returns the cell under the pointer, if any.
function cellAt(event, map, side) {
  if (map.tagName !== "CANVAS") {
    const {row, column} = event.target.dataset;
    return row === undefined ? null : [Number(row), Number(column)];
  }
  const box = map.getBoundingClientRect();
  const at = (offset, size) => Math.min(side - 1, Math.max(0, Math.floor(offset / size * side)));
  return [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
}

// Shows `text(row, column)` next to the pointer, in the element #tip.
export function explainMap(map, side, text) {
  const tip = byId("tip");
  const hide = () => { tip.style.visibility = "hidden"; };
  map.addEventListener("pointermove", event => {
    const cell = cellAt(event, map, side);
    if (!cell) return hide();
    tip.textContent = text(...cell);
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${event.clientY + 14}px`;
    tip.style.visibility = "visible";
  });
  map.addEventListener("pointerleave", hide);
}
