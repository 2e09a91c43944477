// The last minutes of /metrics: the values that the page draws, and the differences between scrapes.
import {histogram, total, totalsBy} from "./exposition.js";

export const KEPT_SECONDS = 300;
export const RATE_SECONDS = 10;  // the period of rates and percentiles

// Returns the values of one scrape that the page draws. `at`: its time in seconds.
export function summarise(series, at) {
  const gauge = name => total(series, `attendant_${name}`);
  return {
    at,
    started: total(series, "process_start_time_seconds"),
    ended: totalsBy(series, "attendant_requests_total", "code"),
    tokens: gauge("tokens_total"),
    padding: gauge("padding_tokens_avoided_total"),
    tokensOf: totalsBy(series, "attendant_tokens_total", "model"),
    seconds: histogram(series, "attendant_request_seconds", {code: "OK"}),
    queued: histogram(series, "attendant_queue_seconds"),
    batchTokens: histogram(series, "attendant_batch_tokens"),
    batchRequests: histogram(series, "attendant_batch_requests"),
    refusals: totalsBy(series, "attendant_refusals_total", "reason"),
    inflight: gauge("inflight_requests"),
    waiting: gauge("queue_requests"),
    waitingSeconds: gauge("queue_predicted_seconds"),
  };
}

// The difference of a counter. A new label started at 0.
export const added = (before, after, label) => (after[label] || 0) - (before[label] || 0);

// Returns the difference of each bucket and of the sum.
export function addedTo(before, after) {
  const old = new Map(before.bounds.map((bound, i) => [bound, before.counts[i]]));
  const counts = after.bounds.map((bound, i) => after.counts[i] - (old.get(bound) || 0));
  return {bounds: after.bounds, counts, sum: after.sum - before.sum, count: counts.length ? counts[counts.length - 1] : 0};
}

// Like Prometheus' histogram_quantile: interpolates linearly within a bucket; returns the last finite bound for larger
// values, and null if nothing was added.
export function quantile(share, {bounds, counts, count}) {
  if (!(count > 0)) return null;
  const rank = share * count;
  const at = counts.findIndex(upTo => upTo >= rank);
  if (bounds[at] === Infinity) return at > 0 ? bounds[at - 1] : null;
  const from = at > 0 ? bounds[at - 1] : 0;
  const below = at > 0 ? counts[at - 1] : 0;
  const within = counts[at] - below;
  return from + (bounds[at] - from) * (within > 0 ? (rank - below) / within : 1);
}

export class History {
  scrapes = [];

  // A restarted server counts from 0 and has no history.
  add(scrape) {
    if (this.scrapes.length && this.last.started !== scrape.started) this.scrapes = [];
    this.scrapes.push(scrape);
    while (this.scrapes[0].at < scrape.at - KEPT_SECONDS) this.scrapes.shift();
  }

  get first() { return this.scrapes[0]; }
  get last() { return this.scrapes[this.scrapes.length - 1]; }
  get seconds() { return this.scrapes.length ? this.last.at - this.first.at : 0; }

  // Returns [before, after] for each scrape except the first, about RATE_SECONDS apart, less at the beginning.
  pairs() {
    let from = 0;
    return this.scrapes.slice(1).map(after => {
      while (this.scrapes[from + 1].at <= after.at - RATE_SECONDS) ++from;
      return [this.scrapes[from], after];
    });
  }
}

export const rate = (before, after, pick) => (pick(after) - pick(before)) / (after.at - before.at);
export const sumOf = counts => Object.values(counts).reduce((sum, count) => sum + count, 0);
