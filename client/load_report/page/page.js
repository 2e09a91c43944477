const reports = JSON.parse(byId("data").textContent).reports;
const compared = reports.length > 1;
const LETTERS = "AB";

const loadOf = step => "rate" in step.load ? `${short(step.load.rate)} requests/s` : `${step.load.concurrency} in flight`;
const failedOf = step => Object.values(step.errors).reduce((sum, count) => sum + count, 0);
const percent = share => `${short(100 * share)} %`;

// All steps of all reports. Steps with the same load have the same color in both reports.
const steps = reports.flatMap((report, at) => report.document.steps.map(step => (
  {step, report: at, name: (compared ? `${LETTERS[at]}, ` : "") + loadOf(step)})));
const loads = [...new Set(steps.map(({step}) => loadOf(step)))];
steps.forEach(one => { one.colour = colour(loads.indexOf(loadOf(one.step))); });

function showHeader() {
  const models = [...new Set(reports.map(report => report.document.plan.model))];
  byId("title").textContent = `Load test of ${models.join(" and ")}`;
  byId("when").textContent = reports.map((report, at) =>
    `${compared ? `${LETTERS[at]}: ${report.name}, ` : ""}${report.document.run.started}, ${report.document.run.server || "a server"} ` +
    `${report.document.run.server_version} at ${report.document.run.address}`).join("; ");
  reports.forEach((report, at) => {
    const prefix = compared ? `${LETTERS[at]}: ` : "";
    if (report.document.interrupted) {
      element("p", byId("verdict"), `${prefix}interrupted: the last step is shorter, and later steps are missing`, {class: "bad"});
    }
    const search = report.document.search;
    if (search) {
      const found = search.rate > 0 ? `${short(search.rate)} requests/s meets ${search.objectives.join(", ")}`
        : `no rate tried meets ${search.objectives.join(", ")}`;
      element("p", byId("verdict"), prefix + found, {class: `verdict ${search.rate > 0 ? "good" : "bad"}`});
      return;
    }
    for (const step of report.document.steps) {
      for (const missed of step.missed) {
        element("p", byId("verdict"), `${prefix}at ${loadOf(step)}: ${missed}`, {class: "bad"});
      }
    }
  });
}

function showSteps() {
  const head = ["load", "answered/s", "goodput/s", "tokens/s", "mean", "p50", "p90", "p99", "p99.9", "max", "errors", "late", ""];
  const rows = steps.map(({step, name, report}) => {
    const latency = step.latency_ms;
    const calls = step.ok + failedOf(step);
    const searched = reports[report].document.search && "rate" in step.load;
    const held = {text: step.missed.length ? "missed" : searched ? "met" : "", kind: step.missed.length ? "bad" : "good"};
    return [name, short(step.requests_per_s), short(step.goodput.requests_per_s), short(step.tokens_per_s),
      ...["mean", "p50", "p90", "p99", "p99.9", "max"].map(key => short(latency[key])),
      {text: percent(calls ? failedOf(step) / calls : 0), kind: failedOf(step) ? "bad" : ""},
      {text: percent(step.late_share), kind: step.late_share > 0.01 ? "bad" : ""}, held];
  });
  table(byId("steps"), [head, ...rows]);
}

// Compares the steps of both reports with the same load, figure by figure.
function showChange() {
  byId("change-section").hidden = !compared;
  if (!compared) return;
  const figures = [["answered/s", step => step.requests_per_s, 1], ["goodput/s", step => step.goodput.requests_per_s, 1],
    ["p50, ms", step => step.latency_ms.p50, -1], ["p99, ms", step => step.latency_ms.p99, -1],
    ["compute, ms", step => step.server_ms.compute, -1]];
  const rows = [["load", "figure", "A", "B", "B to A"]];
  const seen = {};  // a list of steps may repeat a load
  for (const {step: before} of steps.filter(one => one.report === 0)) {
    const load = loadOf(before);
    seen[load] = (seen[load] ?? -1) + 1;
    const other = steps.filter(one => one.report === 1 && loadOf(one.step) === load)[seen[load]];
    if (!other) continue;
    for (const [name, value, better] of figures) {
      const [a, b] = [value(before), value(other.step)];
      const ratio = a > 0 ? b / a : 1;
      const kind = Math.abs(ratio - 1) < 0.02 ? "" : (ratio > 1) === (better > 0) ? "good" : "bad";
      rows.push([load, name, short(a), short(b), {text: a > 0 ? `× ${ratio.toFixed(3)}` : "–", kind}]);
    }
  }
  if (rows.length > 1) table(byId("change"), rows);
  else element("p", byId("change"), "The reports have no step with the same load.", {class: "note"});
}

function drawRates() {
  const open = steps.some(({step}) => "rate" in step.load);
  const used = steps.filter(({step}) => step.ok > 0 && (!open || "rate" in step.load));
  byId("rate-section").hidden = used.length < 2;
  if (used.length < 2) return;
  const rate = step => open ? step.load.rate : step.requests_per_s;
  const series = [];
  reports.forEach((report, at) => ["p50", "p90", "p99"].forEach((key, i) => {
    const points = used.filter(one => one.report === at).sort((a, b) => rate(a.step) - rate(b.step)).map(({step}) => (
      {x: rate(step), y: step.latency_ms[key], text: `${short(step.latency_ms[key])} ms at ${short(rate(step))} requests/s`}));
    series.push({name: compared ? `${LETTERS[at]}, ${key}` : key, colour: colour(i), dash: at === 1, points, marks: true});
  }));
  chart(byId("rate"), {series, x: {title: "requests/s", zero: true}, y: {title: "ms", log: true}});
}

// Returns the points of the latency distribution.
function distribution(step) {
  const total = step.histogram_ms.reduce((sum, [, count]) => sum + count, 0);
  const points = [];
  let seen = 0;
  for (const [upper, count] of step.histogram_ms) {
    seen += count;
    const left = Math.max((total - seen) / total, 0.5 / total);
    points.push({x: Math.log10(1 / left), y: Math.max(upper, 1e-4)});
  }
  return points;
}

function drawPercentiles() {
  const series = steps.map(({step, name, colour: own, report}) => ({name, colour: own, dash: report === 1, points: distribution(step)}));
  const longest = Math.max(1, ...series.flatMap(one => one.points.map(point => point.x)));
  const ticks = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "99.99999 %"]
    .slice(0, Math.ceil(longest) + 1).map((text, value) => ({value, text}));
  chart(byId("percentiles"), {series, x: {title: "of the requests take at most", ticks}, y: {title: "ms", log: true}, height: 300});
}

function lineOf(name, at, seconds, value) {
  const points = seconds.map((second, x) => ({x, y: value(second)})).filter(point => point.y !== null);
  return {name, colour: colour(at), points};
}

// Returns the rate in a second. The last second is incomplete and may be too short for a rate.
const SHORTEST_SECOND = 0.1;
const perSecond = count => second => {
  const length = second.length_s ?? 1;  // for reports of older versions
  return length < SHORTEST_SECOND ? null : count(second) / length;
};

function drawTimeline() {
  const at = Number(byId("step").value);
  const {seconds} = steps[at].step;
  const failed = second => Object.values(second.errors).reduce((sum, count) => sum + count, 0);
  const ended = second => second.ok + failed(second);
  const time = {title: "seconds", zero: true};
  const place = byId("timeline");
  element("h3", place, "Requests per second");
  const rates = [["sent", 7, second => second.sent], ["answered", 0, second => second.ok]];
  if (seconds.some(failed)) rates.push(["failed", 4, failed]);
  chart(place, {series: rates.map(([name, at, count]) => lineOf(name, at, seconds, perSecond(count))), x: time, y: {title: "requests/s", zero: true}, height: 200});
  element("h3", place, "Latency");
  chart(place, {series: ["p50", "p99"].map((key, i) => lineOf(key, i, seconds, second => ended(second) ? second[`${key}_ms`] : null)),
    x: time, y: {title: "ms", zero: true}, height: 200});
  if (!seconds.some(second => second.compute_ms > 0)) return;
  element("h3", place, "In the server, mean");
  chart(place, {series: ["queue", "copy", "compute"].map((key, i) =>
    lineOf(key, i, seconds, second => second.ok ? second[`${key}_ms`] : null)), x: time, y: {title: "ms", zero: true}, height: 200});
}

function showTimelineChoice() {
  const label = element("label", byId("which"), "Step ");
  const select = element("select", label, null, {id: "step"});
  steps.forEach((one, i) => element("option", select, one.name, {value: i}));
  byId("which").hidden = steps.length < 2;
  select.addEventListener("change", redraw);
}

function showErrors() {
  const codes = [...new Set(steps.flatMap(({step}) => Object.keys(step.errors)))].sort();
  if (codes.length === 0) return void element("p", byId("errors"), "No call failed.", {class: "note"});
  table(byId("errors"), [["load", "ok", ...codes], ...steps.map(({step, name}) =>
    [name, step.ok, ...codes.map(code => step.errors[code] || 0)])]);
}

function showTime() {
  const told = steps.filter(({step}) => step.batch.requests > 0);
  if (told.length === 0) return void element("p", byId("time"), "The responses contain no times.", {class: "note"});
  const parts = [["queue", 0], ["copy", 1], ["compute", 2], ["rest", 7]];
  for (const [name, at] of parts) {
    const item = element("span", byId("time-legend"));
    element("i", item, null, {style: `border-color:${colour(at)}`});
    item.append(name);
  }
  const mean = step => step.ok_mean_ms ?? step.latency_ms.mean;  // for reports of older versions
  const longest = Math.max(1e-6, ...told.map(({step}) => mean(step)));
  const made = table(byId("time"), [["load", "queue", "copy", "compute", "rest", "tokens in its batch", "requests in it", ""]]);
  for (const {step, name} of told) {
    const times = {...step.server_ms};
    times.rest = Math.max(0, mean(step) - times.queue - times.copy - times.compute);
    const row = element("tr", made);
    element("td", row, name);
    for (const [part] of parts) element("td", row, short(times[part]));
    element("td", row, short(step.batch.tokens));
    element("td", row, short(step.batch.requests));
    const stack = element("div", element("td", row, null, {class: "bar"}), null, {class: "stack"});
    for (const [part, at] of parts) {
      element("span", stack, null, {style: `width:${100 * times[part] / longest}%;background:${colour(at)}`, title: part});
    }
  }
}

function showMetrics() {
  byId("metrics-section").hidden = !reports.some(report => report.document.metrics);
  reports.forEach((report, at) => {
    const metrics = report.document.metrics;
    if (!metrics) return;
    const place = element("details", byId("metrics"), null, {open: ""});
    element("summary", place, `${compared ? `${LETTERS[at]}: ` : ""}${metrics.url}`);
    const shown = element("div", place, null, {class: "scroll"});
    const counters = Object.entries(metrics.counters).filter(([name, more]) => more !== 0 && !name.includes("_bucket{"));
    table(shown, [["counter", "difference"], ...counters.map(([name, more]) => [name, short(more)])]);
    table(shown, [["gauge", "before", "after"], ...Object.entries(metrics.gauges).map(([name, [before, after]]) =>
      [name, short(before), short(after)])]);
  });
}

function showFacts() {
  const factsOf = ({document: {plan, run}}) => {
    const facts = {...plan, "command line": run.command_line.join(" "), seed: run.seed, client: run.client_version,
      server: `${run.server} ${run.server_version}`};
    for (const [name, value] of Object.entries(run.model || {})) {
      if (name !== "name" && (typeof value !== "object" || value === null)) facts[name] = value;
    }
    for (const [name, value] of Object.entries((run.model || {}).thread_plan || {})) facts[name] = [value].flat().join(", ");
    return facts;
  };
  const all = reports.map(factsOf);
  const names = [...new Set(all.flatMap(Object.keys))];
  const rows = names.map(name => {
    const values = all.map(facts => String(facts[name] ?? "–"));
    const kind = values.every(value => value === values[0]) ? "" : "differs";
    return [name, ...values.map(text => ({text, kind}))];
  });
  table(byId("facts"), [["", ...reports.map((report, at) => compared ? LETTERS[at] : "")], ...rows], {class: "facts"});
}

function redraw() {
  for (const id of ["rate", "percentiles", "timeline"]) byId(id).replaceChildren();
  if (steps.length === 0) return;
  drawRates();
  drawPercentiles();
  drawTimeline();
}

showHeader();
showSteps();
showChange();
showTimelineChoice();
showErrors();
showTime();
showMetrics();
showFacts();
redraw();
window.addEventListener("resize", redraw);
