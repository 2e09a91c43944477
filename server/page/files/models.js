// The served models, their compute types and costs.
import {added} from "./history.js";
import {bytes, number, seconds, table} from "./charts.js";
import {byId} from "./drawing.js";
import {total} from "./exposition.js";

const giga = value => `${number(value / 1e9)} GFLOP/s`;

function rowOf({labels}, history, series) {
  const model = labels.model;
  const cost = (name, more) => total(series, `attendant_cost_${name}`, {model, ...more});
  const elapsed = history.seconds;
  const tokens = elapsed > 0 ? added(history.first.tokensOf, history.last.tokensOf, model) / elapsed : null;
  return [model, labels.version === "0" ? "–" : labels.version, labels.family, labels.compute_type,
    `${labels.layers} × ${labels.heads} heads, ${labels.hidden_size} wide`,
    bytes(total(series, "attendant_model_bytes", {model, part: "weights"})), number(tokens),
    giga(cost("flops_per_second", {part: "products"})), giga(cost("flops_per_second", {part: "attention"})),
    seconds(cost("seconds_per_layer")), number(cost("correction"))];
}

export function showModels(history, series) {
  const models = series.attendant_model_info || [];
  byId("models-none").hidden = models.length > 0;
  byId("models").hidden = models.length === 0;
  table(byId("models"), [["Model", "Version", "Family", "Compute type", "Layers", "Weights", "Tokens per second", "Matrix products",
    "Attention", "Constant per layer", "Correction"], ...models.map(model => rowOf(model, history, series))]);
}

// Returns the labels in /metrics of the model with this name in /v2; empty if there are none.
export function labelsOfModel(series, name) {
  const models = series.attendant_model_info || [];
  const named = name => models.find(one => one.labels.model === name);
  return (named(name) || named(name.replace(/\.(text|hidden)$/, "")) || {labels: {}}).labels;
}
