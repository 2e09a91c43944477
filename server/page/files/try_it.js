// The form that sends a text, or one sequence of another kind, to a model through /v2, like any other client, and shows the
// attention.
import {askForJson} from "./connection.js";
import {byId, element} from "./drawing.js";
import {showAnswer} from "./answer.js";
import {labelsOfModel} from "./models.js";

const OF_TEXTS = ".text";  // ends a model's name that takes texts
const MOST_TOKENS = 256;  // attendant-client inspect draws more
const WORKED_EXAMPLE = {input: "1, 0, 1, 0\n0, 2, 0, 2\n1, 1, 1, 1", texts: ""};
const SENTENCE = {input: "101, 7592, 2088, 102", texts: "[CLS] hello world [SEP]"};
const HAS_ITS_WORDS = /^(synthetic:)?(bert|minilm|distilbert|electra|mobilebert)/;  // families with BERT's vocabulary, mostly
const TEXT = {input: "The cat sits on the mat.", texts: ""};
const KINDS = {
  text: {label: "Text", hint: "The server tokenizes it with the model’s files."},
  input_ids: {label: "Token ids", hint: "One sequence, separated by commas or spaces."},
  hidden_states: {label: "Hidden states",
    hint: "One line per token; numbers separated by commas or spaces."},
  features: {label: "Features", hint: "One line per patch or frame; numbers separated by commas or spaces."},
};

let metrics = {};   // the last series of /metrics
let chosen = null;  // {name, input: metadata of the input that the form sends, outputs: names}

export function followMetrics(series) {
  metrics = series;
  boundLayer();
}

class Mistake extends Error {
  get sentence() { return this.message; }
}

const words = text => text.split(/[\s,]+/).filter(word => word !== "");

const pathOf = (name, call) => `models/${encodeURIComponent(name)}${call}`;

function whereTextsGo() {
  if (chosen.input.name !== "input_ids") return "";
  const name = chosen.name + OF_TEXTS;
  return [...byId("model").options].some(option => option.value === name) ? ` To send a text, choose ${name}.` :
    ` ${chosen.name} does not accept texts, because it has no tokenizer.`;
}

function numbers(text, what) {
  return words(text).map(word => {
    const value = Number(word);
    if (!Number.isFinite(value)) throw new Mistake(`${what}: “${word}” is not a number.${whereTextsGo()}`);
    return value;
  });
}

function readIds(text) {
  const ids = numbers(text, "Token ids");
  const wrong = ids.find(id => !Number.isSafeInteger(id) || id < 0);
  if (wrong !== undefined) throw new Mistake(`Token ids: ${wrong} is not an id.`);
  return {rows: ids.map(id => [id]), datatype: "INT64", shape: [1, ids.length], given: ids.map(String)};
}

function readRows(text, width, what) {
  const rows = text.split(/[\n;]/).filter(line => line.trim() !== "").map(line => numbers(line, what));
  const wrong = rows.findIndex(row => row.length !== width);
  if (wrong >= 0) {
    throw new Mistake(`${what}: line ${wrong + 1} has ${rows[wrong].length} numbers; ${chosen.name} expects ${width}.`);
  }
  return {rows, datatype: "FP32", shape: [1, rows.length, width], given: rows.map((_, i) => `row ${i}`)};
}

// The tokens label the rows.
async function readText(text) {
  if (text.trim() === "") throw new Mistake("Text: enter a text.");
  const [tokens] = await askForJson(pathOf(chosen.name.slice(0, -OF_TEXTS.length), "/tokenize"), "infer", {inputs: text});
  return {rows: [[text]], datatype: "BYTES", shape: [1, 1], given: tokens.map(token => String(token.id)),
    texts: tokens.map(token => token.text)};
}

async function readInput() {
  const kind = chosen.input.name;
  const text = byId("input").value;
  const read = kind === "text" ? await readText(text) : kind === "input_ids" ? readIds(text) :
    readRows(text, chosen.input.shape[2], KINDS[kind].label);
  if (read.rows.length === 0) throw new Mistake(`${KINDS[kind].label}: enter at least one.`);
  if (read.given.length > MOST_TOKENS) {
    throw new Mistake(`${read.given.length} tokens: the page draws at most ${MOST_TOKENS}; use attendant-client inspect for more.`);
  }
  return read;
}

function readTexts(rows) {
  const texts = byId("texts").value.split(/\s+/).filter(text => text !== "");
  if (texts.length > 0 && texts.length !== rows) {
    throw new Mistake(`Token labels: ${texts.length} for ${rows} tokens. Enter one for each token, or none.`);
  }
  return texts;
}

// Hidden states are sent to one layer's stage. For a text, the vector is requested too, if the model has one; for all other
// inputs, only the layers up to `layer` are computed.
function requestFor(read, layer) {
  const inputs = [{name: chosen.input.name, datatype: read.datatype, shape: read.shape, data: read.rows.flat()}];
  if (chosen.input.name === "hidden_states") {
    return {inputs, parameters: {stage: "context", layer}, outputs: [{name: "context_layer"}, {name: "attentions"}]};
  }
  const outputs = [{name: `attentions.${layer}`}];
  if (chosen.input.name !== "text") return {inputs, parameters: {layer_count: layer + 1}, outputs};
  if (!chosen.outputs.includes("sentence_embedding")) return {inputs, parameters: {layer_count: layer + 1}, outputs};
  return {inputs, outputs: [...outputs, {name: "sentence_embedding"}]};
}

function showProblem(error) {
  byId("problem").textContent = error.sentence || `The page failed: ${error.message}.`;
  if (!error.sentence) throw error;
}

async function send(event) {
  event.preventDefault();
  byId("problem").textContent = "";
  const button = byId("send");
  if (button.getAttribute("aria-disabled") === "true" || !chosen) return;
  button.setAttribute("aria-disabled", "true");
  try {
    const read = await readInput();
    const texts = read.texts || readTexts(read.rows.length);
    const layer = byId("layer").value === "" ? NaN : Number(byId("layer").value);
    if (!Number.isSafeInteger(layer) || layer < 0) throw new Mistake("Layer: enter a number of at least 0.");
    const begin = performance.now();
    const answer = await askForJson(`v2/${pathOf(chosen.name, "/infer")}`, "infer", requestFor(read, layer));
    showAnswer(answer, {layer, given: read.given, texts, milliseconds: performance.now() - begin});
  } catch (error) {
    byId("answer").hidden = true;
    showProblem(error);
  } finally {
    button.setAttribute("aria-disabled", "false");
  }
}

function boundLayer() {
  const {layers} = chosen ? labelsOfModel(metrics, chosen.name) : {};
  byId("layer-hint").textContent = layers ? `0 to ${layers - 1}` : "counted from 0";
  if (layers) byId("layer").max = layers - 1;
}

// Returns an example input for the model, if it can be guessed without another request.
function exampleFor({name, shape}) {
  if (name === "text") return TEXT;
  if (name !== "input_ids") return shape[2] === 4 ? WORKED_EXAMPLE : {input: "", texts: ""};
  return HAS_ITS_WORDS.test(labelsOfModel(metrics, chosen.name).family) ? SENTENCE : {input: "1, 2, 3, 4", texts: ""};
}

function showInput() {
  const {input} = chosen;
  const kind = KINDS[input.name];
  byId("input-label").textContent = kind.label;
  byId("input-hint").textContent = kind.hint + (input.shape[2] ? ` ${chosen.name} expects ${input.shape[2]} per line.` : "");
  byId("texts-field").hidden = input.name === "text";
  const example = exampleFor(input);
  byId("input").value = example.input;
  byId("texts").value = example.texts;
  byId("answer").hidden = true;
}

// Keeps the typed text if the model and its input are unchanged.
async function choose(name) {
  const {inputs: [input], outputs} = await askForJson(`v2/${pathOf(name, "")}`, "infer");
  if (byId("model").value !== name) return;  // another model has been chosen
  const same = chosen && chosen.name === name && JSON.stringify(chosen.input) === JSON.stringify(input);
  chosen = {name, input, outputs: outputs.map(output => output.name)};
  if (!same) showInput();
  boundLayer();
}

// Requests the models. Throws Refused.
export async function showForm() {
  const models = (await askForJson("v2/repository/index", "infer", {})).filter(model => model.state === "READY");
  const names = [...new Set(models.map(model => model.name))];
  const place = byId("model");
  const before = place.value;
  place.replaceChildren();
  for (const name of names) element("option", place, name, {value: name});
  byId("try-form").hidden = names.length === 0;
  byId("try-none").hidden = names.length > 0;
  if (names.length === 0) return;
  const first = names.includes(before) ? before : names.find(name => name.endsWith(OF_TEXTS));
  if (first) place.value = first;
  await choose(place.value);
}

export function startForm() {
  byId("try-form").addEventListener("submit", send);
  byId("model").addEventListener("change", () => choose(byId("model").value).catch(showProblem));
}
