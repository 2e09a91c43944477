#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/commands/load/load_commands.h"
#include "client/commands/load/loop_flags.h"
#include "client/commands/load/request_flags.h"
#include "client/commands/load/result_flags.h"
#include "client/commands/load/run_facts.h"
#include "client/commands/load/step_runner.h"
#include "client/load_report/report.h"
#include "client/load_report/report_json.h"
#include "client/load_report/server_metrics.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kSetUpTimeout = absl::Seconds(10);

class LoadTestCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  absl::Status ReadFlags();
  // Opens the connections and returns the function that sends over them.
  decltype(LoadContext::send) Open(const Session& session, Verifier* verifier) const;
  absl::StatusOr<MetricsSample> FetchServerMetrics(const Session& session) const;
  void Measure(StepRunner& runner, LoadReport& report) const;
  void Search(StepRunner& runner, LoadReport& report) const;
  ExitCode Emit(Session& session, const LoadReport& report) const;
  void PrintProblems(const LoadReport& report, std::ostream& err) const;
  bool Succeeded(const LoadReport& report) const;

  LoopFlags loop_flags_;
  RequestFlags requests_;
  ResultFlags results_;
  LoopOptions loop_;  // what ReadFlags makes of loop_flags_
};

CommandTable LoadTestCommand::Table() {
  CommandTable table = {
      "Load tests", "load-test", "Send requests and measure throughput and latency",
      "Prints throughput, goodput (responses within --deadline), and latencies of all calls, "
      "including failed ones, counted from their intended send times.",
      "attendant-client load-test --model m --lengths 5..100 --duration 30s\n"
      "attendant-client load-test --model m --rate 100..400:4 --require 'p99<1s'\n"
      "attendant-client load-test --model m --find-rate 'p99<1s' --duration 20s"};
  loop_flags_.AddTo(table);
  requests_.AddTo(table);
  results_.AddTo(table);
  return table;
}

ExitCode LoadTestCommand::Run(Session& session) {
  if (absl::Status status = ReadFlags(); !status.ok()) return ReportBadUsage(session, status);
  // The deadline applies to the measured calls and may be shorter than this call takes.
  const CallOptions patient = {.timeout = std::max(session.call.timeout, kSetUpTimeout)};
  const absl::StatusOr<ModelInfo> model = session.Connect().GetModel(requests_.model(), patient);
  if (!model.ok()) return ReportServerError(session, model.status());
  const absl::StatusOr<Workload> workload = requests_.MakeWorkload(*model);
  if (!workload.ok()) return ReportBadUsage(session, workload.status());
  LoadReport report;
  report.run = AskForFacts(session, patient, *model);
  report.run.seed = requests_.seed();
  report.plan = {{"method", requests_.DescribeMethod()},
                 {"model", model->name()},
                 {"loop", loop_.Describe()},
                 {"connections", absl::StrCat(loop_.connections)}};
  for (auto& line : requests_.Describe(*workload)) report.plan.push_back(std::move(line));
  std::unique_ptr<Verifier> verifier;
  if (results_.verify()) {
    auto made = Verifier::Make(session.Connect(/*own_connection=*/true), patient, *workload);
    if (!made.ok()) return ReportServerError(session, made.status());
    verifier = *std::move(made);
  }
  const absl::StatusOr<MetricsSample> before = FetchServerMetrics(session);
  if (!before.ok()) return ReportBadUsage(session, before.status());
  StepRunner runner(session, loop_, *workload,
                    {.send = Open(session, verifier.get()),
                     .log = results_.request_log(),
                     .verifier = verifier.get(),
                     .progress = results_.progress()});
  loop_.search ? Search(runner, report) : Measure(runner, report);
  report.interrupted = runner.interrupted();
  const absl::StatusOr<MetricsSample> after = FetchServerMetrics(session);
  if (!after.ok()) {
    // The measurements matter more than this.
    session.err << "attendant-client: " << after.status().message() << "\n";
  } else if (!results_.metrics_url().empty()) {
    report.metrics = MetricsJson(results_.metrics_url(), *before, *after);
  }
  return Emit(session, report);
}

absl::Status LoadTestCommand::ReadFlags() {
  absl::Status status = requests_.Read();
  absl::StatusOr<LoopOptions> loop = loop_flags_.Read(requests_.seed());
  status.Update(loop.status());
  if (status.ok()) status = results_.Read();
  if (!status.ok()) return status;
  loop_ = *std::move(loop);
  return absl::OkStatus();
}

decltype(LoadContext::send) LoadTestCommand::Open(const Session& session,
                                                  Verifier* verifier) const {
  if (verifier != nullptr) return OpenVerifiedCalls(session, loop_.connections, *verifier);
  return requests_.stream() ? OpenStreams(session, loop_.connections)
                            : OpenCalls(session, loop_.connections);
}

absl::StatusOr<MetricsSample> LoadTestCommand::FetchServerMetrics(const Session& session) const {
  const std::string& url = results_.metrics_url();
  if (url.empty()) return MetricsSample();
  const TlsOptions tls = session.connection.tls.value_or(TlsOptions());
  absl::StatusOr<MetricsSample> metrics = FetchMetrics({.url = url,
                                                        .ca = tls.ca,
                                                        .certificate = tls.certificate,
                                                        .key = tls.key,
                                                        .token = results_.metrics_token()},
                                                       kSetUpTimeout);
  if (metrics.ok()) return metrics;
  return absl::InvalidArgumentError(absl::StrCat("--metrics-url: ", metrics.status().message()));
}

void LoadTestCommand::Measure(StepRunner& runner, LoadReport& report) const {
  for (const LoadStep& step : loop_.steps) {
    StepResult result = runner.Run(step);
    result.missed = MissedIn(result, results_.required());
    report.steps.push_back(std::move(result));
    if (runner.interrupted()) return;
  }
}

void LoadTestCommand::Search(StepRunner& runner, LoadReport& report) const {
  const StepResult probe = runner.Run(loop_.steps.front());
  RateSearch search;
  if (!runner.interrupted() && probe.measured.ok > 0) {
    search = SearchRate(*loop_.search, probe.throughput(),
                        [&](double rate) -> std::optional<StepResult> {
                          StepResult result = runner.Run({.rate = rate});
                          if (runner.interrupted()) return std::nullopt;
                          return result;
                        });
  }
  report.search = FoundRate{.objectives = {},
                            .width = loop_.search->width,
                            .capacity = probe.throughput(),
                            .found = search.found,
                            .failed = search.failed,
                            .converged = search.converged};
  for (const Objective& objective : loop_.search->objectives) {
    report.search->objectives.push_back(objective.text());
  }
  report.steps = std::move(search.steps);
  report.steps.insert(report.steps.begin(), probe);
}

ExitCode LoadTestCommand::Emit(Session& session, const LoadReport& report) const {
  const JsonValue document = ReportJson(report);
  if (session.json) {
    PrintJson(session, document);
  } else {
    session.out << ReportTable(report);
  }
  PrintProblems(report, session.err);
  if (absl::Status status = results_.Write(document); !status.ok()) {
    session.err << "attendant-client: " << status.message() << "\n";
    return kBadUsage;
  }
  if (Succeeded(report)) return kSucceeded;
  for (const StepResult& step : report.steps) {
    const absl::Status& error = step.measured.first_error;
    if (error.ok()) continue;
    session.err << "attendant-client: the first error: " << absl::StatusCodeToString(error.code())
                << ": " << error.message() << "\n";
    break;
  }
  return kLoadTestFailed;
}

void LoadTestCommand::PrintProblems(const LoadReport& report, std::ostream& err) const {
  if (report.interrupted) {
    err << "attendant-client: interrupted: the last step is shorter, and later steps are missing\n";
  }
  for (const StepResult& step : report.steps) {
    if (step.mismatches > 0) {
      err << "attendant-client: at " << Name(step.load) << ": " << step.mismatches
          << " responses differ from the responses to the same requests by themselves\n";
    }
    if (step.measured.latency.count() == 0) {
      err << "attendant-client: at " << Name(step.load) << ": no request was measured\n";
    }
    if (report.search) continue;  // a search misses bounds on purpose
    for (const std::string& missed : step.missed) {
      err << "attendant-client: ";
      if (report.steps.size() > 1) err << "at " << Name(step.load) << ": ";
      err << "--require " << missed << "\n";
    }
  }
}

bool LoadTestCommand::Succeeded(const LoadReport& report) const {
  const bool differ = std::any_of(report.steps.begin(), report.steps.end(),
                                  [](const StepResult& step) { return step.mismatches > 0; });
  if (differ || report.interrupted) return false;
  if (report.search) return report.search->found > 0;
  const bool bounds_errors = std::any_of(results_.required().begin(), results_.required().end(),
                                         [](const Objective& one) { return one.is_errors(); });
  return std::all_of(report.steps.begin(), report.steps.end(), [&](const StepResult& step) {
    return step.missed.empty() && step.measured.ok > 0 &&
           (bounds_errors || step.measured.error_count() == 0);
  });
}

}  // namespace

std::unique_ptr<Command> MakeLoadTestCommand() { return std::make_unique<LoadTestCommand>(); }

}  // namespace attendant::client
