// Starts the page: requests /metrics every two seconds and passes them to the parts that draw them.
import {drawAnswer} from "./answer.js";
import {markScrolling} from "./charts.js";
import {ask, askForJson, useTokens} from "./connection.js";
import {byId} from "./drawing.js";
import {parseExposition} from "./exposition.js";
import {History, summarise} from "./history.js";
import {showLoad} from "./load.js";
import {showModels} from "./models.js";
import {followMetrics, showForm, startForm} from "./try_it.js";

const POLL_MILLISECONDS = 2000;
const history = new History();
let facts = {rest: true, tokens: false};
let paused = false;
let timer = 0;
let polls = 0;
let servedBefore = null;

function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;  // otherwise screen readers would repeat it
}

// Shows why a part has nothing to show, and the form for tokens if a token is required.
function showRefusal(id, error) {
  if (error.needsToken) byId("access").hidden = false;
  say(id, error.sentence || `The page failed: ${error.message}.`);
  if (!error.sentence) throw error;
}

async function tryForm() {
  try {
    await showForm();
    say("try-status", "");
  } catch (error) {
    showRefusal("try-status", error);
  }
}

// Updates the form when the served models change.
function followModels(series) {
  const served = (series.attendant_model_info || []).map(one => `${one.labels.model} ${one.labels.version}`).join("\n");
  if (servedBefore !== null && served !== servedBefore && facts.rest) tryForm();
  servedBefore = served;
}

async function poll() {
  clearTimeout(timer);
  const mine = ++polls;
  try {
    const series = parseExposition(await ask("metrics", "metrics"));
    if (mine !== polls) return;  // a button has started another poll
    history.add(summarise(series, performance.now() / 1000));
    byId("live").hidden = false;
    showLoad(history, series);
    showModels(history, series);
    followMetrics(series);
    followModels(series);
    say("status", "");
  } catch (error) {
    if (mine !== polls) return;
    showRefusal("status", error);
    if (error.needsToken) return;  // until there is a new token
  }
  if (!paused) timer = setTimeout(poll, POLL_MILLISECONDS);
}

// The form uses what /metrics says about the models.
async function pollAndTry() {
  await poll();
  if (facts.rest) await tryForm();
}

function takeTokens(event) {
  event.preventDefault();
  const [metrics, infer] = ["token-metrics", "token-infer"].map(id => byId(id).value.trim());
  useTokens(metrics || infer, infer || metrics);
  pollAndTry();
}

function togglePause() {
  paused = !paused;
  byId("pause").textContent = paused ? "Resume" : "Pause";
  if (paused) clearTimeout(timer);
  else poll();
}

async function start() {
  startForm();
  byId("access-form").addEventListener("submit", takeTokens);
  byId("pause").addEventListener("click", togglePause);
  const markAll = () => document.querySelectorAll(".scroll").forEach(markScrolling);
  window.addEventListener("resize", markAll);
  byId("numbers-part").addEventListener("toggle", markAll);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnswer);
  facts = await askForJson("page/facts.json");
  byId("rest-off").hidden = facts.rest;
  if (facts.tokens) {
    byId("access").hidden = false;
    say("status", "This server requires a token to show its load.");
    if (facts.rest) say("try-status", "This server requires a token to try models.");
    return;
  }
  pollAndTry();
}

start().catch(error => showRefusal("status", error));
