#include "client/commands/load/loop_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/read_tensors.h"
#include "client/flags/flag_kinds.h"
#include "client/load_requests/input_files.h"
#include "client/load_test/step_list.h"

namespace attendant::client {
namespace {

constexpr char kPoisson[] = "poisson";
constexpr char kConstant[] = "constant";
constexpr StepRange kRates = {.least = 1e-3, .most = 1e6};
constexpr StepRange kConcurrencies = {.least = 1, .most = 100000, .whole = true};
constexpr int kUsualConcurrency = 4;
// Enough to fill the batches of a server, so that the search begins near the rate that it can do.
constexpr int kProbeConcurrency = 32;
constexpr absl::Duration kLongestProbe = absl::Seconds(3);
constexpr absl::Duration kUsualWarmup = absl::Seconds(1);
constexpr absl::Duration kUsualDuration = absl::Seconds(10);

}  // namespace

LoadPlan LoopOptions::PlanOf(const LoadStep& step) const {
  LoadPlan plan;
  plan.concurrency = step.concurrency;
  plan.warmup = warmup;
  if (timestamps != nullptr) {
    plan.schedule.emplace(timestamps, speed);
  } else if (step.rate) {
    plan.schedule.emplace(arrival, *step.rate, seed);
  }
  if (requests > 0) plan.requests = requests;
  plan.duration = duration;
  if (search && !step.rate) plan.duration = std::min(duration, kLongestProbe);
  return plan;
}

std::string LoopOptions::Describe() const {
  const char* arrivals = arrival == Arrival::kPoisson ? kPoisson : kConstant;
  if (timestamps != nullptr) {
    return absl::StrCat("open, replay of ", step_text, " at ", speed, " times the speed");
  }
  if (search) return absl::StrCat("open, search for the highest rate, ", arrivals);
  if (steps.front().rate) return absl::StrCat("open, ", step_text, " requests/s, ", arrivals);
  return absl::StrCat("closed, ", step_text, " in flight");
}

void LoopFlags::AddTo(CommandTable& load_test) {
  load_test.Add("Load", StepFlags());
  load_test.Add(
      "Load",
      {{"--arrival", "", "Arrivals of an open loop: at constant intervals, or independent (random)",
        ChoiceKind<Arrival>(arrival_,
                            {{kConstant, Arrival::kConstant}, {kPoisson, Arrival::kPoisson}})},
       {"--duration", "DURATION",
        "Duration of each step; if omitted, --requests or --timestamps-file can end a step",
        DurationKind(duration_, kUsualDuration)},
       {"--requests", "COUNT", "Maximum number of measured requests per step",
        IntegerKind<int64_t>(requests_, 1)},
       {"--warmup", "DURATION",
        "Duration of sending without measuring at the start of each step; 0 with --timestamps-file",
        DurationKind(warmup_, kUsualWarmup)},
       {"--connections", "COUNT", "Number of TCP connections for the requests",
        IntegerKind(connections_, 1, 1000)}});
}

Flags LoopFlags::StepFlags() {
  return {
      {"--concurrency", "STEPS",
       "Closed loop: number of requests in flight. STEPS: one number, a list such as 1,8,32, or a "
       "ramp such as 4..32:8 with 8 steps",
       TextKind(concurrency_, absl::StrCat(kUsualConcurrency))},
      {"--rate", "STEPS",
       "Open loop: requests per second, independent of the responses; one step after the other",
       TextKind(rate_), "", "--concurrency"},
      {"--find-rate", "OBJECTIVE",
       "Search for the highest rate of an open loop that meets this objective (as for --require), "
       "starting at half the rate of a closed loop",
       TextsKind(find_rate_), "", "--rate"},
      {"--find-width", "PERCENT",
       "Stop when the lowest rate that fails is at most this much higher than the highest rate "
       "that passes",
       TextKind(find_width_), "--find-rate"},
      {"--timestamps-file", "FILE",
       "Open loop: send a request at each of these recorded times, in seconds, one per line; all "
       "of them unless --duration is given",
       TextKind(timestamps_file_), "", "--concurrency --rate --find-rate"},
      {"--speed", "FACTOR", "Replay --timestamps-file at this multiple of the recorded speed",
       RealKind(speed_, 1e-3, 1e6), "--timestamps-file"},
  };
}

absl::StatusOr<LoopOptions> LoopFlags::Read(uint64_t seed) const {
  LoopOptions options;
  options.arrival = arrival_;
  options.warmup = warmup_.value_or(kUsualWarmup);
  options.duration = duration_.value_or(requests_ == 0 ? kUsualDuration : absl::InfiniteDuration());
  options.requests = requests_;
  options.connections = connections_;
  options.seed = seed;
  absl::Status status;
  if (!timestamps_file_.empty()) {
    status = ReadReplay(options);
  } else {
    if (!find_rate_.empty()) status = ReadSearch(options);
    status.Update(ReadSteps(options));
  }
  if (!status.ok()) return status;
  return options;
}

absl::Status LoopFlags::ReadSteps(LoopOptions& options) const {
  const bool open = !rate_.empty();
  if (!open && !options.search && arrival_ == Arrival::kPoisson) {
    return absl::InvalidArgumentError(
        "--arrival: poisson requires --rate or --find-rate: in a closed loop, responses determine "
        "when requests are sent");
  }
  options.step_text = open ? rate_ : concurrency_;
  if (options.step_text.empty()) {
    options.step_text = absl::StrCat(options.search ? kProbeConcurrency : kUsualConcurrency);
  }
  const absl::StatusOr<std::vector<double>> steps =
      ParseSteps(options.step_text, open ? kRates : kConcurrencies);
  if (!steps.ok()) return Named(open ? "--rate" : "--concurrency", steps.status());
  if (options.search && steps->size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--concurrency: expected one value with --find-rate, for the closed loop "
                     "before it; got ",
                     steps->size()));
  }
  for (const double step : *steps) {
    options.steps.push_back(open ? LoadStep{.rate = step}
                                 : LoadStep{.concurrency = static_cast<int>(step)});
  }
  return absl::OkStatus();
}

absl::Status LoopFlags::ReadReplay(LoopOptions& options) const {
  absl::StatusOr<std::vector<double>> times = ReadTimestamps(timestamps_file_);
  if (!times.ok()) return Named("--timestamps-file", times.status());
  const double seconds = times->back() / speed_;
  const auto count = static_cast<double>(times->size());
  // The mean of the intervals; requests that are all due at once have none.
  options.steps = {{.rate = seconds > 0 ? (count - 1) / seconds : count}};
  options.timestamps = std::make_shared<const std::vector<double>>(*std::move(times));
  options.speed = speed_;
  options.step_text = timestamps_file_;
  if (!warmup_) options.warmup = absl::ZeroDuration();
  if (!duration_) options.duration = absl::InfiniteDuration();
  return absl::OkStatus();
}

absl::Status LoopFlags::ReadSearch(LoopOptions& options) const {
  absl::StatusOr<std::vector<Objective>> objectives = ParseObjectives(find_rate_);
  if (!objectives.ok()) return Named("--find-rate", objectives.status());
  RateSearchOptions search = {.least_rate = kRates.least, .most_rate = kRates.most};
  bool has_latency = false;
  for (const Objective& objective : *objectives) {
    has_latency = has_latency || objective.is_latency();
    // The user's own bound on errors takes the place of the usual one.
    if (objective.is_errors()) search.most_errors = 1;
  }
  if (!has_latency) {
    return absl::InvalidArgumentError(
        "--find-rate: expected an objective for latency, such as p99<50ms");
  }
  search.objectives = *std::move(objectives);
  absl::string_view width = find_width_;
  if (!absl::ConsumeSuffix(&width, "%") || !absl::SimpleAtod(width, &search.width) ||
      !(search.width >= 0.1 && search.width <= 100)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--find-width: expected a share of 0.1%..100%; got \"", find_width_, "\""));
  }
  search.width /= 100;
  options.search = std::move(search);
  return absl::OkStatus();
}

}  // namespace attendant::client
