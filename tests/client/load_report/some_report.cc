#include "tests/client/load_report/some_report.h"

#include "client/load_test/recorder.h"

namespace attendant::client {

LoadReport SomeReport() {
  Recorder recorder(absl::Milliseconds(150));
  Execution execution;
  execution.queue = absl::Milliseconds(1);
  execution.copy = absl::Milliseconds(0.5);
  execution.compute = absl::Milliseconds(3);
  execution.batch_tokens = 40;
  execution.batch_requests = 2;
  const absl::Time start = absl::UnixEpoch();
  for (int i = 1; i <= 200; ++i) {
    recorder.Record({start, start, start + absl::Milliseconds(i)}, 10, execution);
  }
  for (int i = 0; i < 4; ++i) {
    recorder.Record({start, start, start + absl::Milliseconds(300)}, 10,
                    absl::ResourceExhaustedError("full"));
  }
  StepResult step;
  step.load = {.concurrency = 8};
  step.measured = recorder.Total();
  step.warmup_requests = 7;
  step.deadline = absl::Milliseconds(150);
  step.elapsed = absl::Seconds(2);
  step.seconds.resize(2);
  step.seconds[0].sent = 204;
  step.seconds[0].ok = 200;
  step.seconds[0].p99 = absl::Milliseconds(198);
  step.seconds[0].compute = absl::Milliseconds(600);
  step.seconds[1].errors[absl::StatusCode::kResourceExhausted] = 4;
  LoadReport report;
  report.run.command_line = {"attendant-client", "load-test"};
  report.run.started = absl::UnixEpoch();
  report.run.seed = 9;
  report.run.client_version = "1.2";
  report.run.address = "localhost:8001";
  report.run.server = "attendant";
  report.run.server_version = "1.3";
  report.run.model = {{"name", "m"}, {"compute_type", "bf16"}};
  report.plan = {{"method", "encode"}, {"lengths", "5..512"}};
  report.steps.push_back(std::move(step));
  return report;
}

LoadReport SomeSearch() {
  LoadReport report = SomeReport();
  for (const double rate : {50, 75}) {
    report.steps.push_back(report.steps[0]);
    report.steps.back().load = {.rate = rate};
  }
  report.steps[2].missed = {"p99<250ms: expected below 250 ms, measured 300 ms"};
  report.search = FoundRate{.objectives = {"p99<250ms", "max<1s"},
                            .width = 0.05,
                            .capacity = 100,
                            .found = 50,
                            .failed = 75,
                            .converged = false};
  return report;
}

}  // namespace attendant::client
