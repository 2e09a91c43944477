// Draws the current and recent load of the server from its metrics.
import {added, addedTo, KEPT_SECONDS, quantile, rate, sumOf} from "./history.js";
import {barChart, bytes, count, lineChart, number, percent, rowBar, seconds, table} from "./charts.js";
import {byId, element} from "./drawing.js";
import {total} from "./exposition.js";

const OWNERS = [
  ["model weights", "attendant_model_bytes", {part: "weights"}],
  ["batch activations", "attendant_model_bytes", {part: "activations"}],
  ["arriving requests", "attendant_receiving_bytes"],
  ["waiting and running requests", "attendant_request_bytes"],
  ["unsent responses", "attendant_answer_bytes"],
  ["registered memories", "attendant_registered_memory_bytes"],
  ["sequences in chunks", "attendant_stream_sequence_bytes"],
  ["cached results", "attendant_cache_bytes"],
];

const REASONS = {
  slots: "requests in flight (--max-inflight)",
  streams: "open streams (--max-streams)",
  memory: "memory for requests and responses (--memory-limit-bytes)",
  peer_share: "share of the client (token, or else address)",
  queue_jobs: "requests in the queue (--max-queue-requests)",
  queue_tokens: "tokens in the queue (--max-queue-tokens)",
  queue_seconds: "predicted time in the queue (--max-queue-seconds)",
  deadline_hopeless: "time until the client’s deadline",
  registered: "memory kept between requests (--max-registered-bytes)",
  draining: "the server is stopping",
};

const answered = scrape => scrape.ended.OK || 0;
const failed = scrape => sumOf(scrape.ended) - answered(scrape);
const percentile = (share, name) => ([before, after]) => quantile(share, addedTo(before[name], after[name]));

// The share of padding in all tokens between two scrapes.
function paddingShare([before, after]) {
  const avoided = after.padding - before.padding;
  const all = avoided + after.tokens - before.tokens;
  return all > 0 ? avoided / all : null;
}

function showTiles(history) {
  const recent = history.pairs().pop();
  const all = [history.first, history.last];
  const of = value => recent ? value(recent) : null;
  const show = (id, text) => { byId(id).textContent = text; };
  show("tile-requests", number(of(([before, after]) => rate(before, after, answered))));
  show("tile-tokens", number(of(([before, after]) => rate(before, after, scrape => scrape.tokens))));
  show("tile-p50", seconds(of(percentile(0.5, "seconds"))));
  show("tile-p99", seconds(of(percentile(0.99, "seconds"))));
  show("tile-waiting", count(history.last.waiting));
  show("tile-padding", percent(paddingShare(all)));
  show("tile-refused", count(sumOf(history.last.refusals) - sumOf(history.first.refusals)));
  byId("quiet").hidden = sumOf(history.last.ended) > 0;
}

// `lines`: [name, function from a pair of scrapes to a value].
function draw(id, history, show, lines) {
  const pairs = history.pairs();
  const minutes = Math.max(1, Math.ceil((history.seconds - 1) / 60));
  lineChart(byId(id), {
    ages: pairs.map(([, after]) => history.last.at - after.at), span: Math.min(60 * minutes, KEPT_SECONDS), show,
    log: show === seconds,
    lines: lines.map(([name, value]) => ({name, values: pairs.map(value)})),
  });
}

const rateOf = pick => ([before, after]) => rate(before, after, pick);
const gaugeOf = pick => ([, after]) => pick(after);

function showLines(history) {
  draw("chart-requests", history, number, [["successful", rateOf(answered)], ["refused or failed", rateOf(failed)]]);
  draw("chart-tokens", history, number,
    [["computed", rateOf(scrape => scrape.tokens)], ["padding, not computed", rateOf(scrape => scrape.padding)]]);
  draw("chart-latency", history, seconds,
    [["p50", percentile(0.5, "seconds")], ["p90", percentile(0.9, "seconds")], ["p99", percentile(0.99, "seconds")]]);
  draw("chart-queue", history, number,
    [["waiting", gaugeOf(scrape => scrape.waiting)], ["in flight", gaugeOf(scrape => scrape.inflight)]]);
  draw("chart-queue-time", history, seconds, [["p50", percentile(0.5, "queued")], ["p99", percentile(0.99, "queued")],
    ["predicted for waiting requests", gaugeOf(scrape => scrape.waitingSeconds)]]);
}

function showBatches(history, id, noteId, name, what) {
  const {bounds, counts, sum, count: batches} = addedTo(history.first[name], history.last[name]);
  byId(noteId).textContent = batches > 0 ? `${count(batches)} batches, ${number(sum / batches)} ${what} on average.`
    : "No batches in this period.";
  byId(id).hidden = !(batches > 0);
  if (!(batches > 0)) return;
  const bars = bounds.map((bound, i) => (
    {name: bound === Infinity ? "more" : `≤${bound}`, value: counts[i] - (i > 0 ? counts[i - 1] : 0)}));
  const used = bars.map(bar => bar.value > 0);
  barChart(byId(id), bars.slice(Math.max(used.indexOf(true) - 1, 0), used.lastIndexOf(true) + 2));
}

function showMemory(series) {
  const owners = OWNERS.map(([name, metric, labels]) => [name, total(series, metric, labels)]);
  const most = Math.max(...owners.map(([, size]) => size), 1);
  table(byId("memory"), [["Owner", "Memory", ""],
    ...owners.map(([name, size]) => [name, bytes(size), cell => rowBar(cell, size / most)])]);
  byId("memory-note").textContent = `The process has ${bytes(total(series, "process_resident_memory_bytes"))} of resident memory; ` +
    "activations become resident when they are first used. Requests, responses, registered memories and sequences may use " +
    `${bytes(total(series, "attendant_budget_bytes"))} together.`;
}

function showRefusals(history) {
  const {first, last} = history;
  const reasons = Object.keys(last.refusals).sort((a, b) => last.refusals[b] - last.refusals[a]);
  const codes = Object.keys(last.ended).filter(code => code !== "OK").sort();
  byId("refusals-none").hidden = reasons.length + codes.length > 0;
  const show = (id, title, names, counts) => {
    byId(id).hidden = names.length === 0;
    table(byId(id), [[title, "Last 5 minutes", "Since startup"], ...names.map(name => [cell => {
      element("b", cell, name);
      if (REASONS[name]) element("small", cell, REASONS[name]);
    }, count(added(first[counts], last[counts], name)), count(last[counts][name])])]);
  };
  show("refusals", "Refused because of", reasons, "refusals");
  show("failures", "Failed with status", codes, "ended");
}

function showServer(series) {
  const {labels} = (series.attendant_build_info || [{labels: {}}])[0];
  const ready = total(series, "attendant_ready") > 0;
  const up = Date.now() / 1000 - total(series, "process_start_time_seconds");
  const hours = up / 3600;
  const running = hours >= 48 ? `${number(hours / 24)} days` : hours >= 1 ? `${number(hours)} h` : `${Math.max(1, Math.round(up / 60))} min`;
  byId("server").replaceChildren(`Version ${labels.version}, ${labels.isa}, oneDNN ${labels.onednn}; up for ${running}; `);
  element("b", byId("server"), ready ? "ready" : "not ready", {class: ready ? "good" : "bad"});
}

export function showLoad(history, series) {
  showServer(series);
  showTiles(history);
  showLines(history);
  showBatches(history, "chart-batch-tokens", "batch-tokens-note", "batchTokens", "tokens");
  showBatches(history, "chart-batch-requests", "batch-requests-note", "batchRequests", "requests");
  showMemory(series);
  showRefusals(history);
}
