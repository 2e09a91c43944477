#include "client/commands/load/loop_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/command.h"
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

absl::Status OfFlag(const char* flag, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(flag, ": ", status.message()));
}

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
    return absl::StrCat("open, replay of ", step_text, ", ", speed, " times as fast");
  }
  if (search) return absl::StrCat("open, search of the highest rate, ", arrivals);
  if (steps.front().rate) return absl::StrCat("open, ", step_text, " requests/s, ", arrivals);
  return absl::StrCat("closed, ", step_text, " under way");
}

void LoopFlags::AddTo(CLI::App& load_test) {
  AddStepsTo(load_test);
  load_test
      .add_option("--arrival", arrival_,
                  "Arrivals of an open loop: at constant intervals, or "
                  "independent")
      ->check(CLI::IsMember({kConstant, kPoisson}))
      ->type_name("constant|poisson")
      ->capture_default_str();
  AddDuration(load_test, "--duration", duration_,
              "Measure each step for this long; without it, --requests alone decides")
      ->each([this](const std::string&) { duration_given_ = true; });
  load_test.add_option("--requests", requests_, "Measure at most this many requests in each step")
      ->check(CLI::PositiveNumber);
  AddDuration(load_test, "--warmup", warmup_,
              "First send for this long in each step without measuring; a replay does without")
      ->each([this](const std::string&) { warmup_given_ = true; });
  load_test
      .add_option("--connections", connections_, "TCP connections to spread the requests over")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

void LoopFlags::AddStepsTo(CLI::App& load_test) {
  auto* concurrency =
      load_test
          .add_option("--concurrency", concurrency_,
                      "Closed loop: requests in flight at any time; STEPS: one, a list (1,8,32) or "
                      "a ramp (4..32:8, in 8 steps)")
          ->type_name("STEPS")
          ->default_str(absl::StrCat(kUsualConcurrency));
  auto* rate = load_test
                   .add_option("--rate", rate_,
                               "Open loop: requests per second, however fast the answers come; one "
                               "step after the other")
                   ->type_name("STEPS")
                   ->excludes(concurrency);
  auto* find =
      load_test
          .add_option("--find-rate", find_rate_,
                      "Search for the highest rate of an open loop that keeps this objective (as "
                      "of --require; repeatable), beginning at half of what a closed loop reaches")
          ->type_name("OBJECTIVE")
          ->allow_extra_args(false)
          ->excludes(rate);
  auto* timestamps =
      load_test
          .add_option(
              "--timestamps-file", timestamps_file_,
              "Open loop: send a request at each of these times, in seconds, one a line, as "
              "they have been recorded; to their end unless --duration is given")
          ->type_name("FILE")
          ->excludes(concurrency)
          ->excludes(rate)
          ->excludes(find);
  load_test
      .add_option("--speed", speed_, "Replay --timestamps-file so many times as fast as it was")
      ->check(CLI::Range(1e-3, 1e6))
      ->capture_default_str()
      ->needs(timestamps);
  load_test
      .add_option("--find-width", find_width_,
                  "End the search when the lowest rate that failed is at most this much higher "
                  "than the highest one that held")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->needs(find);
}

absl::StatusOr<LoopOptions> LoopFlags::Read(uint64_t seed) const {
  LoopOptions options;
  options.arrival = arrival_ == kPoisson ? Arrival::kPoisson : Arrival::kConstant;
  options.warmup = warmup_;
  options.duration = requests_ == 0 || duration_given_ ? duration_ : absl::InfiniteDuration();
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
  options.step_text = open ? rate_ : concurrency_;
  if (options.step_text.empty()) {
    options.step_text = absl::StrCat(options.search ? kProbeConcurrency : kUsualConcurrency);
  }
  const absl::StatusOr<std::vector<double>> steps =
      ParseSteps(options.step_text, open ? kRates : kConcurrencies);
  if (!steps.ok()) return OfFlag(open ? "--rate" : "--concurrency", steps.status());
  if (options.search && steps->size() > 1) {
    return absl::InvalidArgumentError(
        "--concurrency: expected one value beside --find-rate, for the closed loop before it");
  }
  for (const double step : *steps) {
    options.steps.push_back(open ? LoadStep{.rate = step}
                                 : LoadStep{.concurrency = static_cast<int>(step)});
  }
  return absl::OkStatus();
}

absl::Status LoopFlags::ReadReplay(LoopOptions& options) const {
  absl::StatusOr<std::vector<double>> times = ReadTimestamps(timestamps_file_);
  if (!times.ok()) return OfFlag("--timestamps-file", times.status());
  const double seconds = times->back() / speed_;
  const auto count = static_cast<double>(times->size());
  // The mean of the intervals; requests that are all due at once have none.
  options.steps = {{.rate = seconds > 0 ? (count - 1) / seconds : count}};
  options.timestamps = std::make_shared<const std::vector<double>>(*std::move(times));
  options.speed = speed_;
  options.step_text = timestamps_file_;
  if (!warmup_given_) options.warmup = absl::ZeroDuration();
  if (!duration_given_) options.duration = absl::InfiniteDuration();
  return absl::OkStatus();
}

absl::Status LoopFlags::ReadSearch(LoopOptions& options) const {
  absl::StatusOr<std::vector<Objective>> objectives = ParseObjectives(find_rate_);
  if (!objectives.ok()) return OfFlag("--find-rate", objectives.status());
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
        absl::StrCat("--find-width: '", find_width_, "' is no share from 0.1% to 100%"));
  }
  search.width /= 100;
  options.search = std::move(search);
  return absl::OkStatus();
}

}  // namespace attendant::client
