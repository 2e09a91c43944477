#include "client/commands/load_test_command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/input_options.h"
#include "client/load_test/interrupt.h"

namespace attendant::client {
namespace {

constexpr char kAttend[] = "attend";
constexpr char kPoisson[] = "poisson";
constexpr absl::Duration kProgressEvery = absl::Seconds(1);
constexpr absl::Duration kSetUpTimeout = absl::Seconds(10);
constexpr int kMostUnderWay = 100000;

// Prints a line per second on stderr.
class Progress {
 public:
  Progress(bool on, std::ostream& err, LoadClock& clock, Recorder& recorder)
      : on_(on),
        err_(err),
        clock_(clock),
        recorder_(recorder),
        start_(clock.Now()),
        last_(start_) {}

  void Tick() {
    const absl::Time now = clock_.Now();
    if (!on_ || now - last_ < kProgressEvery) return;
    err_ << ProgressLine(recorder_.TakeInterval(), now - last_, now - start_) << std::endl;
    last_ = now;
  }

 private:
  const bool on_;
  std::ostream& err_;
  LoadClock& clock_;
  Recorder& recorder_;
  const absl::Time start_;
  absl::Time last_;
};

}  // namespace

CLI::App* LoadTestCommand::AddTo(CLI::App& app) {
  CLI::App* load_test = app.add_subcommand(
      "load-test",
      "Sends requests for a while; prints throughput, goodput (answers within --deadline), and "
      "latency of all calls, failed ones too, from intended send times");
  AddLoadTo(*load_test);
  AddRequestsTo(*load_test);
  return load_test;
}

void LoadTestCommand::AddLoadTo(CLI::App& load_test) {
  auto* concurrency =
      load_test
          .add_option("--concurrency", concurrency_, "Closed loop: requests in flight at any time")
          ->check(CLI::Range(1, kMostUnderWay))
          ->capture_default_str();
  load_test
      .add_option("--rate", rate_, "Open loop: requests per second, however fast the answers come")
      ->check(CLI::Range(1e-3, 1e6))
      ->excludes(concurrency);
  load_test
      .add_option("--arrival", arrival_,
                  "Arrivals of --rate: at constant intervals, or independent")
      ->check(CLI::IsMember({"constant", kPoisson}))
      ->type_name("constant|poisson")
      ->capture_default_str();
  AddDuration(load_test, "--duration", duration_,
              "Measure for this long; without it, --requests alone decides")
      ->each([this](const std::string&) { duration_given_ = true; });
  load_test.add_option("--requests", requests_, "Measure at most this many requests")
      ->check(CLI::PositiveNumber);
  AddDuration(load_test, "--warmup", warmup_, "First send for this long without measuring");
  load_test
      .add_option("--connections", connections_, "TCP connections to spread the requests over")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddDuration(load_test, "--max-p99", max_p99_, "Exit with 4 if the 99th percentile is above");
  load_test.add_flag("--progress", progress_,
                     "Print a line per second on stderr, even if it is not a terminal");
}

void LoadTestCommand::AddRequestsTo(CLI::App& load_test) {
  load_test.add_option("--method", method_, "What to call")
      ->check(CLI::IsMember({kAttend, "encode"}))
      ->type_name("attend|encode")
      ->capture_default_str();
  load_test.add_flag("--stream", stream_,
                     "encode: pipeline the requests over one EncodeStream per connection");
  load_test.add_option("--model", workload_.model,
                       "Name of the model; default: the server's only one");
  load_test
      .add_option("--lengths", lengths_,
                  "Tokens of each sequence: N, MIN..MAX (uniform), or "
                  "lognormal:MEDIAN:SIGMA[:MAX] (MAX: 512)")
      ->type_name("LENGTHS")
      ->capture_default_str();
  load_test.add_option("--batch", workload_.batch, "Sequences in a request")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  load_test.add_flag("--padded", workload_.padded,
                     "Send [B, S, E] with padding instead of packed [T, E]");
  load_test.add_flag("--token-ids", workload_.token_ids, "Send token ids instead of hidden states");
  load_test.add_flag("--pooled", workload_.pooled,
                     "encode: ask for pooled vectors instead of hidden states");
  AddFloatType(load_test, "--wire-dtype", wire_dtype_,
               "Type of hidden states on the wire; default: float32");
  load_test.add_option("--seed", workload_.seed, "Seed of lengths, values and arrivals")
      ->capture_default_str();
}

ExitCode LoadTestCommand::Run(Session& session) {
  const absl::StatusOr<LengthDistribution> lengths = LengthDistribution::Parse(lengths_);
  if (!lengths.ok()) return ReportBadUsage(session, lengths.status());
  workload_.method = method_ == kAttend ? Method::kAttend : Method::kEncode;
  if (stream_ && workload_.method == Method::kAttend) {
    return ReportBadUsage(session, absl::InvalidArgumentError("attend has no --stream"));
  }
  workload_.dtype = FloatType(wire_dtype_).value_or(DataType::kFloat32);
  // The deadline is that of the calls that are measured, and may be shorter than this one takes.
  const CallOptions patient = {.timeout = std::max(session.call.timeout, kSetUpTimeout)};
  const absl::StatusOr<ModelInfo> model = session.Connect().GetModel(workload_.model, patient);
  if (!model.ok()) return ReportServerError(session, model.status());
  const absl::StatusOr<Workload> workload = Workload::Make(workload_, *lengths, *model);
  if (!workload.ok()) return ReportBadUsage(session, workload.status());
  LoadReport report = Measure(session, *workload);
  report.plan = DescribePlan(*model, *workload);
  return Emit(session, report);
}

LoadPlan LoadTestCommand::MakePlan() const {
  LoadPlan plan;
  plan.concurrency = concurrency_;
  plan.warmup = warmup_;
  if (rate_ > 0) {
    const Arrival arrival = arrival_ == kPoisson ? Arrival::kPoisson : Arrival::kConstant;
    plan.schedule.emplace(arrival, rate_, workload_.seed);
  }
  if (requests_ > 0) plan.requests = requests_;
  if (requests_ == 0 || duration_given_) plan.duration = duration_;
  return plan;
}

LoadTestCommand::Send LoadTestCommand::OpenCalls(const Session& session) const {
  std::vector<Client> clients;
  for (int i = 0; i < connections_; ++i) {
    clients.push_back(session.Connect(/*own_connection=*/true));
  }
  return [clients = std::move(clients), call = session.call](int64_t index, const WorkItem& item,
                                                             LoadContext::Done done) {
    clients[static_cast<size_t>(index) % clients.size()].SendAsync(item.request, call,
                                                                   std::move(done));
  };
}

LoadTestCommand::Send LoadTestCommand::OpenStreams(const Session& session) const {
  std::vector<std::shared_ptr<LoadStream>> streams;
  for (int i = 0; i < connections_; ++i) {
    streams.push_back(session.Connect(/*own_connection=*/true).OpenLoadStream(session.call));
  }
  return [streams = std::move(streams)](int64_t index, const WorkItem& item,
                                        LoadContext::Done done) {
    streams[static_cast<size_t>(index) % streams.size()]->SendAsync(item.request, std::move(done));
  };
}

LoadReport LoadTestCommand::Measure(Session& session, const Workload& workload) {
  LoadClock& clock = LoadClock::Real();
  Recorder recorder(session.call.timeout);
  const InterruptWatch watch;
  Progress progress(progress_ || isatty(STDERR_FILENO) == 1, session.err, clock, recorder);
  LoadGenerator generator(MakePlan(), {.workload = workload,
                                       .send = stream_ ? OpenStreams(session) : OpenCalls(session),
                                       .clock = clock,
                                       .recorder = recorder,
                                       .tick = [&] {
                                         progress.Tick();
                                         return !watch.interrupted();
                                       }});
  generator.Run();
  LoadReport report;
  report.deadline = session.call.timeout;
  report.measured = recorder.Total();
  report.warmup_requests = recorder.warmup_requests();
  report.elapsed =
      std::max(absl::ZeroDuration(), report.measured.last_answer - generator.measured_from());
  return report;
}

std::vector<std::pair<std::string, std::string>> LoadTestCommand::DescribePlan(
    const ModelInfo& model, const Workload& workload) const {
  const std::string loop = rate_ > 0 ? absl::StrCat("open, ", rate_, " requests/s, ", arrival_)
                                     : absl::StrCat("closed, ", concurrency_, " under way");
  const std::string input =
      workload_.token_ids ? "token ids" : absl::StrCat("hidden states, ", Name(workload_.dtype));
  return {{"method", absl::StrCat(method_, stream_ ? ", over a stream per connection" : "")},
          {"model", model.name()},
          {"loop", loop},
          {"connections", absl::StrCat(connections_)},
          {"lengths", lengths_},
          {"batch", absl::StrCat(workload_.batch)},
          {"input", absl::StrCat(input, workload_.padded ? ", padded" : ", packed")},
          {"distinct requests", absl::StrFormat("%d of %.1f tokens on average", workload.size(),
                                                workload.mean_tokens())}};
}

ExitCode LoadTestCommand::Emit(Session& session, const LoadReport& report) const {
  if (session.json) {
    PrintJson(session, ReportJson(report));
  } else {
    session.out << ReportTable(report);
  }
  const absl::Duration p99 = report.measured.latency.Percentile(99);
  if (p99 > max_p99_) {
    session.err << "attendant-client: p99 is " << absl::FormatDuration(p99) << ", above --max-p99 "
                << absl::FormatDuration(max_p99_) << "\n";
  }
  const bool clean = report.measured.error_count() == 0 && report.measured.ok > 0;
  return clean && p99 <= max_p99_ ? kSucceeded : kLoadTestFailed;
}

}  // namespace attendant::client
