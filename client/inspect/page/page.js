const data = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let sequence = data.sequences[0];
let statistic = "confidence";
let ownScale = true;

const STATISTICS = {
  confidence: {title: "Confidence", digits: 3, of: head => head.confidence,
    note: "The largest probability of each query, averaged over the queries."},
  neighbour: {title: "Attends to an adjacent token", digits: 2, of: head => head.neighbour_share,
    note: "Share of the queries that attend most to the previous (←) or the next (→) token. Heads with at least 0.9 are " +
      "positional and framed."},
  rare: {title: "Attends to rare tokens", digits: 2, of: head => head.rare_share,
    note: "Share of the queries that attend most to one of the sequence’s least frequent ids, counted over all sequences " +
      "of the input. – without ids, or if all are equally frequent."},
  symmetry: {title: "Symmetry", digits: 2, of: head => head.symmetry, note: "‖(P + Pᵀ) ∕ 2‖² ∕ ‖P‖²: 1 if P is symmetric."},
  asymmetry: {title: "Largest asymmetry", digits: 2, of: head => head.largest_asymmetry,
    note: "The largest |P(i, j) − P(j, i)|."},
  rank: {title: "Rank", digits: 0, of: head => head.rank_of_90_percent, most: () => sequence.tokens,
    note: "Number of singular values that make up 90 % of the sum, out of the number of tokens."},
};

const readable = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#101418" : "#ffffff";
const mean = values => values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
const shown = (value, digits) => value === null ? "–" : value.toFixed(digits);

function small(value) {
  if (value === null) return "–";
  return value !== 0 && value < 0.001 ? value.toExponential(1) : value.toFixed(3);
}

function headName(layer, head) { return `layer ${layer}, head ${head}`; }

function showFacts() {
  byId("model").textContent = data.model;
  document.title = `${data.model}: attention`;
  byId("facts").textContent = `${data.family}; ${data.model_layers} layers, ${data.heads} heads, ${data.hidden_size} wide; ` +
    `computed in ${data.compute_type || "an unknown type"}. This sequence: ${sequence.tokens} tokens.`;
}

function showControls() {
  const controls = byId("controls");
  if (data.sequences.length > 1) {
    const label = element("label", controls, "Sequence ");
    const choice = element("select", label);
    data.sequences.forEach((each, i) => element("option", choice, `${i} (${each.tokens} tokens)`, {value: i}));
    choice.addEventListener("change", () => { sequence = data.sequences[choice.value]; showAll(); });
  }
  const label = element("label", byId("statistic"), "Show ");
  const choice = element("select", label);
  for (const [key, each] of Object.entries(STATISTICS)) element("option", choice, each.title, {value: key});
  choice.addEventListener("change", () => { statistic = choice.value; showHeads(); });
}

function showLayers() {
  const table = element("table");
  const titles = element("tr", table);
  for (const title of ["layer", "token uniformity", "", "confidence", "symmetry", "positional heads"]) {
    element("th", titles, title);
  }
  const addRow = (name, uniformity, rest) => {
    const row = element("tr", table);
    element("th", row, name);
    element("td", row, small(uniformity));
    const bar = element("td", row, "", {class: "bar"});
    element("span", bar, "", {style: `width: ${100 * Math.min(uniformity || 0, 1)}%`});
    for (const text of rest) element("td", row, text);
  };
  if (sequence.input_uniformity !== null) addRow("input", sequence.input_uniformity, ["", "", ""]);
  for (const layer of sequence.layers) {
    const positional = layer.heads.flatMap(head => head.positional ? [`${head.head}${head.neighbour < 0 ? "←" : "→"}`] : []);
    addRow(layer.layer, layer.token_uniformity, [shown(mean(layer.heads.map(head => head.confidence)), 3),
      shown(mean(layer.heads.map(head => head.symmetry)), 2), positional.join(" ") || "none"]);
  }
  byId("layers").replaceChildren(table);
}

function showHeads() {
  const chosen = STATISTICS[statistic];
  byId("statistic-note").textContent = chosen.note;
  const most = chosen.most ? chosen.most() : 1;
  const colours = ramp();
  const table = element("table", null, null, {class: "heads"});
  const titles = element("tr", table);
  element("th", titles, "layer");
  const numbers = [...new Set(sequence.layers.flatMap(layer => layer.heads.map(({head}) => head)))].sort((a, b) => a - b);
  for (const number of numbers) element("th", titles, number);
  for (const layer of sequence.layers) {
    const row = element("tr", table);
    element("th", row, layer.layer);
    for (const number of numbers) {
      const place = element("td", row);
      const head = layer.heads.find(one => one.head === number);
      if (!head) continue;  // pruned
      const value = chosen.of(head);
      const arrow = statistic === "neighbour" ? (head.neighbour < 0 ? "←" : "→") : "";
      const button = element("button", place, shown(value, chosen.digits) + arrow,
        {title: headName(layer.layer, number), type: "button"});
      const tint = colours(Math.min(Math.max((value || 0) / most, 0), 1));
      button.style.background = css(tint);
      button.style.color = readable(tint);
      if (statistic === "neighbour" && head.positional) button.style.outline = "2px solid var(--ink)";
      button.addEventListener("click", () => enlarge(layer, head));
    }
  }
  byId("heads").replaceChildren(table);
}

function showRank() {
  const curves = sequence.layers.flatMap((layer, l) => layer.heads.map(head =>
    ({values: head.cumulative_singular_values, layer: l, name: headName(layer.layer, head.head)}))).filter(each => each.values);
  const place = byId("rank");
  if (curves.length === 0) {
    place.replaceChildren(element("p", null, "None: the sequence is too long, or its probabilities are not finite.", {class: "note"}));
    return;
  }
  const width = 720, height = 300, left = 44, right = 90, top = 12, bottom = 40;
  const svg = drawing("svg", place, {viewBox: `0 0 ${width} ${height}`, role: "img"});
  const n = sequence.tokens;
  const x = k => left + (width - left - right) * (n === 1 ? 0 : (k - 1) / (n - 1));
  const y = share => top + (height - top - bottom) * (1 - share);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    drawing("path", svg, {d: `M${left} ${y(share)}H${width - right}`, class: "axis"});
    drawing("text", svg, {x: left - 6, y: y(share) + 4, "text-anchor": "end"}, share);
  }
  for (const k of [...new Set([1, Math.round((n + 1) / 4), Math.round((n + 1) / 2), Math.round(3 * (n + 1) / 4), n])]) {
    if (k > 0) drawing("text", svg, {x: x(k), y: height - bottom + 18, "text-anchor": "middle"}, k);
  }
  drawing("text", svg, {x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, "k largest singular values");
  const [first, last] = [colour("--layer-0"), colour("--layer-1")];
  const layers = sequence.layers.length;
  const tint = l => css(mix(first, last, layers > 1 ? l / (layers - 1) : 1));
  for (const curve of curves) {
    const points = curve.values.map((share, i) => `${x(i + 1).toFixed(1)},${y(share).toFixed(1)}`);
    const line = drawing("polyline", svg, {points: points.join(" "), fill: "none", stroke: tint(curve.layer),
      "stroke-width": 1.2, "stroke-opacity": 0.8});
    drawing("title", line, {}, curve.name);
  }
  const step = Math.max(1, Math.ceil(layers / 12));
  for (let l = 0, row = 0; l < layers; l += step, ++row) {
    drawing("path", svg, {d: `M${width - right + 12} ${top + 8 + 20 * row}h16`, stroke: tint(l), "stroke-width": 3});
    drawing("text", svg, {x: width - right + 34, y: top + 12 + 20 * row}, `layer ${sequence.layers[l].layer}`);
  }
  place.replaceChildren(svg);
}

// Returns the probability of each cell; a map has three bytes per cell.
function probabilitiesOf(head) {
  const bytes = atob(head.map);
  const byte = (cell, i) => bytes.charCodeAt(3 * cell + i);
  return Float64Array.from({length: bytes.length / 3},
    (_, cell) => (byte(cell, 0) * 65536 + byte(cell, 1) * 256 + byte(cell, 2)) / 0xffffff);
}

// Returns the color of each cell, and the largest probability.
function levelOf(head) {
  const probabilities = probabilitiesOf(head);
  const most = probabilities.reduce((a, b) => Math.max(a, b), 1 / 0xffffff);
  const whole = ownScale ? most : 1;
  return {most, level: (row, column) => Math.sqrt(probabilities[row * sequence.map_cells + column] / whole)};
}

function paint(canvas, head) {
  const {most, level} = levelOf(head);
  paintMap(canvas, sequence.map_cells, level);
  return most;
}

// Returns the text of a token, if known, otherwise its id or position.
function labelOf(token) {
  if (sequence.token_texts) return sequence.token_texts[token];
  return sequence.token_ids ? `${sequence.token_ids[token]}` : `${sequence.positions[token]}`;
}

function tokenName(cell) {
  const from = Math.floor(cell * sequence.tokens / sequence.map_cells);
  const to = Math.floor((cell + 1) * sequence.tokens / sequence.map_cells) - 1;
  if (to > from) return `${sequence.positions[from]}–${sequence.positions[to]}`;
  const position = sequence.positions[from];
  if (sequence.token_texts) return `${sequence.token_texts[from]} (${position})`;
  return sequence.token_ids ? `${position} (id ${sequence.token_ids[from]})` : `${position}`;
}

function explain(map, head) {
  const probabilities = probabilitiesOf(head);
  explainMap(map, sequence.map_cells, (row, column) => {
    const p = probabilities[row * sequence.map_cells + column];
    return `${tokenName(row)} attends to ${tokenName(column)}: ${p.toFixed(3)}`;
  });
}

// Draws a map, with labels if there is space for them.
function largeMap(place, head, name) {
  place.replaceChildren();
  if (sequence.tokens > Math.min(MOST_LABELS, sequence.map_cells)) {
    const canvas = element("canvas", place, null, {role: "img", "aria-label": name});
    paint(canvas, head);
    return canvas;
  }
  const labels = sequence.positions.map((_, token) => labelOf(token));
  return labelledMap(place, labels, levelOf(head).level, name);
}

function enlarge(layer, head) {
  const name = headName(layer.layer, head.head);
  byId("enlarged-title").textContent = name;
  explain(largeMap(byId("enlarged-map"), head, name), head);
  byId("enlarged").append(byId("tip"));  // otherwise the dialog would cover it
  byId("enlarged").showModal();
}

function showMaps() {
  const {tokens, map_cells: cells} = sequence;
  byId("map-note").textContent = "Rows are queries, columns are keys, from the top left; colors show the square root of the probability. " +
    (tokens > cells ? `${tokens} tokens are drawn in ${cells} × ${cells} cells; a cell is the probability from its queries to its keys, ` +
      "averaged over the queries. " : "") + `Click a map to enlarge it${tokens > MOST_LABELS ? "" : ", with its labels"}.`;
  const place = byId("maps");
  place.replaceChildren();
  const label = element("label", element("p", place));
  const box = element("input", label, null, {type: "checkbox"});
  box.checked = ownScale;
  box.addEventListener("change", () => { ownScale = box.checked; showMaps(); });
  label.append(" Scale each map to its own largest probability");
  for (const layer of sequence.layers) {
    element("h3", place, `Layer ${layer.layer}`);
    const grid = element("div", place, null, {class: "maps"});
    layer.heads.forEach(head => {
      const figure = element("figure", grid);
      const canvas = element("canvas", figure, null, {role: "img", "aria-label": headName(layer.layer, head.head)});
      const most = paint(canvas, head);
      explain(canvas, head);
      canvas.addEventListener("click", () => enlarge(layer, head));
      element("figcaption", figure, `head ${head.head}, up to ${small(most)}${head.positional ? ", positional" : ""}`);
    });
  }
}

function showAll() { showFacts(); showLayers(); showHeads(); showRank(); showMaps(); }

byId("enlarged").addEventListener("close", () => document.body.append(byId("tip")));
dark.addEventListener("change", showAll);
showControls();
showAll();
