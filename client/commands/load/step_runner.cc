#include "client/commands/load/step_runner.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "client/load_report/report.h"

namespace attendant::client {
namespace {

constexpr absl::Duration kProgressEvery = absl::Seconds(1);

using Send = decltype(LoadContext::send);

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

std::vector<Client> Connect(const Session& session, int connections) {
  std::vector<Client> clients;
  for (int i = 0; i < connections; ++i) {
    clients.push_back(session.Connect(/*own_connection=*/true));
  }
  return clients;
}

}  // namespace

Send OpenCalls(const Session& session, int connections) {
  return [clients = Connect(session, connections), call = session.call](
             int64_t index, const WorkItem& item, LoadContext::Done done) {
    clients[static_cast<size_t>(index) % clients.size()].SendAsync(item.request, call,
                                                                   std::move(done));
  };
}

Send OpenStreams(const Session& session, int connections) {
  std::vector<std::shared_ptr<LoadStream>> streams;
  for (int i = 0; i < connections; ++i) {
    streams.push_back(session.Connect(/*own_connection=*/true).OpenLoadStream(session.call));
  }
  return [streams = std::move(streams)](int64_t index, const WorkItem& item,
                                        LoadContext::Done done) {
    streams[static_cast<size_t>(index) % streams.size()]->SendAsync(item.request, std::move(done));
  };
}

Send OpenVerifiedCalls(const Session& session, int connections, Verifier& verifier) {
  return [clients = Connect(session, connections), call = session.call, &verifier](
             int64_t index, const WorkItem& item, LoadContext::Done done) {
    clients[static_cast<size_t>(index) % clients.size()].FetchAsync(
        item.request, call,
        [&verifier, index, done = std::move(done)](const absl::StatusOr<RawAnswer>& answer) {
          done(verifier.Check(index, answer));
        });
  };
}

StepRunner::StepRunner(const Session& session, const LoopOptions& loop, const Workload& workload,
                       Options options)
    : session_(session), loop_(loop), workload_(workload), options_(std::move(options)) {}

StepResult StepRunner::Run(const LoadStep& step) {
  LoadClock& clock = LoadClock::Real();
  Recorder recorder(session_.call.timeout);
  const bool shown = options_.progress || isatty(STDERR_FILENO) == 1;
  Progress progress(shown, session_.err, clock, recorder);
  if (shown && (loop_.search || loop_.steps.size() > 1)) session_.err << Name(step) << std::endl;
  RequestLog* const log = options_.log;
  if (log != nullptr) log->BeginStep(steps_++);
  const auto tick = [&] {
    progress.Tick();
    if (log != nullptr) log->Flush();
    return !watch_.interrupted();
  };
  LoadGenerator generator(loop_.PlanOf(step), {.workload = workload_,
                                               .send = options_.send,
                                               .clock = clock,
                                               .recorder = recorder,
                                               .tick = tick,
                                               .log = log});
  generator.Run();
  if (log != nullptr) log->Flush();
  StepResult result;
  result.load = step;
  result.deadline = session_.call.timeout;
  result.measured = recorder.Total();
  result.seconds = recorder.Seconds();
  if (options_.verifier != nullptr) result.mismatches = options_.verifier->TakeMismatches();
  result.warmup_requests = recorder.warmup_requests();
  result.elapsed =
      std::max(result.measured.last_answer, generator.measured_until()) - generator.measured_from();
  return result;
}

}  // namespace attendant::client
