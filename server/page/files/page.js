// Starts the page: asks for /metrics every two seconds and hands them to the parts that draw them.
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
  if (byId(id).textContent !== text) byId(id).textContent = text;  // or readers would hear it each time
}

// Why one of the two parts has nothing to show, and the form for tokens if one is wanted.
function showRefusal(id, error) {
  if (error.needsToken) byId("access").hidden = false;
  say(id, error.sentence || `The page has failed: ${error.message}.`);
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

// Models come and go.
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
    if (mine !== polls) return;  // another one was begun meanwhile, by a button
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
    if (error.needsToken) return;  // until there is another one
  }
  if (!paused) timer = setTimeout(poll, POLL_MILLISECONDS);
}

// The form shows what /metrics says of the models.
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
  byId("pause").textContent = paused ? "Go on" : "Pause";
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
    say("status", "This server shows its load to callers with a token.");
    if (facts.rest) say("try-status", "This server wants a token for that.");
    return;
  }
  pollAndTry();
}

start().catch(error => showRefusal("status", error));
