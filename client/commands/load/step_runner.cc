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

}  // namespace

Send OpenCalls(const Session& session, int connections) {
  std::vector<Client> clients;
  for (int i = 0; i < connections; ++i) {
    clients.push_back(session.Connect(/*own_connection=*/true));
  }
  return [clients = std::move(clients), call = session.call](int64_t index, const WorkItem& item,
                                                             LoadContext::Done done) {
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

StepRunner::StepRunner(const Session& session, const LoopOptions& loop, const Workload& workload,
                       Send send, bool progress)
    : session_(session),
      loop_(loop),
      workload_(workload),
      send_(std::move(send)),
      progress_(progress || isatty(STDERR_FILENO) == 1) {}

StepResult StepRunner::Run(const LoadStep& step) {
  LoadClock& clock = LoadClock::Real();
  Recorder recorder(session_.call.timeout);
  Progress progress(progress_, session_.err, clock, recorder);
  if (progress_ && loop_.steps.size() + (loop_.search ? 1 : 0) > 1) {
    session_.err << Name(step) << std::endl;
  }
  LoadGenerator generator(
      loop_.PlanOf(step),
      {.workload = workload_, .send = send_, .clock = clock, .recorder = recorder, .tick = [&] {
         progress.Tick();
         return !watch_.interrupted();
       }});
  generator.Run();
  StepResult result;
  result.load = step;
  result.deadline = session_.call.timeout;
  result.measured = recorder.Total();
  result.warmup_requests = recorder.warmup_requests();
  result.elapsed =
      std::max(absl::ZeroDuration(), result.measured.last_answer - generator.measured_from());
  return result;
}

}  // namespace attendant::client
