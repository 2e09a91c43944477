// The response with attention: maps of its heads, the probabilities of one head, and context rows, if any.
import {byId, element, explainMap, labelledMap, MOST_LABELS, paintMap} from "./drawing.js";
import {markScrolling, table} from "./charts.js";

const MOST_NUMBERS = 32;  // tokens whose probabilities are shown as a table
const MOST_COLUMNS = 16;  // of context rows

let last = null;  // the arguments of showAnswer

const shown = value => value === null ? "not finite" : value.toFixed(3);

// The probabilities of all heads: [heads, length, length] in one list.
class Maps {
  constructor({shape, data}, labels) {
    [, this.heads, this.side] = shape;
    this.data = data;
    this.labels = labels;
  }
  at(head, row, column) { return this.data[(head * this.side + row) * this.side + column]; }
  most(head) {
    let most = 0;
    for (let row = 0; row < this.side; ++row) {
      for (let column = 0; column < this.side; ++column) most = Math.max(most, this.at(head, row, column) || 0);
    }
    return most;
  }
  // Colors show the square root of the probability; the largest is the darkest.
  level(head) {
    const most = this.most(head) || 1;
    return (row, column) => Math.sqrt((this.at(head, row, column) || 0) / most);
  }
  explain(map, head) {
    explainMap(map, this.side, (row, column) => (
      `${this.labels[row]} attends to ${this.labels[column]}: ${shown(this.at(head, row, column))}`));
  }
}

function showHead(maps, head, layer) {
  const name = `Layer ${layer}, head ${head}`;
  byId("head-title").textContent = `${name}: up to ${shown(maps.most(head))}`;
  const place = byId("head-map");
  place.replaceChildren();
  if (maps.side <= MOST_LABELS) {
    maps.explain(labelledMap(place, maps.labels, maps.level(head), `${name}; the table below contains its probabilities`), head);
  } else {
    const canvas = element("canvas", place, null, {role: "img", "aria-label": name, class: "large"});
    paintMap(canvas, maps.side, maps.level(head));
    maps.explain(canvas, head);
  }
  markScrolling(place);
  byId("numbers-part").hidden = maps.side > MOST_NUMBERS;
  if (maps.side > MOST_NUMBERS) return;
  table(byId("numbers"), [["attends to →", ...maps.labels], ...maps.labels.map((label, row) => (
    [label, ...maps.labels.map((_, column) => shown(maps.at(head, row, column)))]))]);
}

function showHeads(maps, layer) {
  const place = byId("heads");
  place.replaceChildren();
  const buttons = [];
  const choose = head => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === head));
    showHead(maps, head, layer);
  };
  for (let head = 0; head < maps.heads; ++head) {
    const button = element("button", place, null, {type: "button"});
    paintMap(element("canvas", button, null, {"aria-hidden": "true"}), maps.side, maps.level(head));
    element("span", button, `head ${head}`);
    button.addEventListener("click", () => choose(head));
    buttons.push(button);
  }
  place.hidden = maps.heads === 1;
  choose(0);
}

function showContext(output, labels) {
  const fits = output && output.shape[2] <= MOST_COLUMNS;
  byId("context-part").hidden = !fits;
  if (!fits) return;
  const width = output.shape[2];
  table(byId("context"), [["", ...Array.from({length: width}, (_, column) => column)], ...labels.map((label, row) => (
    [label, ...output.data.slice(row * width, (row + 1) * width).map(shown)]))]);
}

function showVector(output) {
  byId("vector").hidden = !output;
  if (!output) return;
  const first = output.data.slice(0, 8).map(shown).join(", ");
  byId("vector").textContent = `Vector of ${output.data.length} numbers: ${first}${output.data.length > 8 ? ", …" : ""}`;
}

// Returns labels for `length` rows. A model may put prefix rows before the rows of the request.
export function labelsOf(length, given, texts) {
  const own = length - given.length;
  return Array.from({length}, (_, i) => texts[i - own] || (i < own ? `prefix ${i}` : given[i - own]));
}

// `given` contains the names of the request's rows; `texts` contains a label for each, or is empty.
export function showAnswer(answer, {layer, given, texts, milliseconds}) {
  last = {answer, layer, given, texts, milliseconds};
  byId("answer").hidden = false;
  drawAnswer();
}

// Called again when the color scheme changes.
export function drawAnswer() {
  if (last === null) return;
  const {answer, layer, given, texts, milliseconds} = last;
  const output = name => answer.outputs.find(one => one.name.startsWith(name));
  const attention = output("attentions");
  const labels = labelsOf(attention.shape[2], given, texts);
  const maps = new Maps(attention, labels);
  byId("facts").textContent = `${maps.side} tokens, layer ${layer}, ${maps.heads === 1 ? "1 head" : `${maps.heads} heads`}; ` +
    `response in ${milliseconds.toFixed(0)} ms.`;
  showHeads(maps, layer);
  showVector(output("sentence_embedding"));
  showContext(output("context_layer"), labels);
}
