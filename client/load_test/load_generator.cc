#include "client/load_test/load_generator.h"

#include <algorithm>
#include <utility>

namespace attendant::client {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(20);

}  // namespace

LoadGenerator::LoadGenerator(LoadPlan plan, LoadContext context)
    : plan_(std::move(plan)), context_(std::move(context)) {}

void LoadGenerator::Run() {
  const absl::Time start = context_.clock.Now();
  measured_from_ = start + plan_.warmup;
  measured_until_ = measured_from_;
  end_ = measured_from_ + plan_.duration;
  context_.recorder.Begin(measured_from_);
  if (plan_.schedule) {
    RunOpenLoop();
  } else {
    for (int i = 0; i < plan_.concurrency; ++i) SendOne(context_.clock.Now());
  }
  while (in_flight() > 0) {
    context_.clock.WaitUntil(context_.clock.Now() + kTick);
    Tick();
  }
}

void LoadGenerator::RunOpenLoop() {
  const absl::Time start = context_.clock.Now();
  absl::Time due = start + plan_.schedule->Next();
  absl::Time next_tick = start + kTick;
  while (!complete() && due < absl::InfiniteFuture()) {
    const absl::Time now = context_.clock.Now();
    if (now >= next_tick) {
      Tick();
      next_tick = now + kTick;
    }
    if (now < std::min(due, end_)) {
      context_.clock.WaitUntil(std::min({due, end_, next_tick}));
    } else if (SendOne(due)) {
      due = start + plan_.schedule->Next();
    } else {
      if (due >= end_) measured_until_ = end_;
      return;
    }
  }
}

bool LoadGenerator::SendOne(absl::Time intended) {
  const std::optional<Ticket> ticket = Admit(intended);
  if (!ticket) return false;
  RequestTimes times{.intended = intended, .sent = context_.clock.Now(), .answered = {}};
  context_.send(ticket->index, context_.workload.item(ticket->index),
                [this, times, ticket](const absl::StatusOr<Execution>& answer) {
                  Answered(*ticket, times, answer);
                });
  return true;
}

std::optional<LoadGenerator::Ticket> LoadGenerator::Admit(absl::Time intended) {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || intended >= end_ || measured_ >= plan_.requests) return std::nullopt;
  const bool measured = intended >= measured_from_;
  measured_ += measured ? 1 : 0;
  ++in_flight_;
  return Ticket{sent_++, measured};
}

void LoadGenerator::Answered(const Ticket& ticket, RequestTimes times,
                             const absl::StatusOr<Execution>& answer) {
  times.answered = context_.clock.Now();
  if (ticket.measured) {
    context_.recorder.Record(times, context_.workload.item(ticket.index).tokens, answer);
  } else {
    context_.recorder.RecordWarmup();
  }
  if (context_.log != nullptr) Log(ticket, times, answer);
  if (!plan_.schedule) SendOne(times.answered);
  // This comes last, because Run returns and this object may be destroyed when nothing is in
  // flight.
  absl::MutexLock lock(&mutex_);
  --in_flight_;
}

void LoadGenerator::Log(const Ticket& ticket, const RequestTimes& times,
                        const absl::StatusOr<Execution>& answer) const {
  RequestRecord record = {.index = ticket.index,
                          .measured = ticket.measured,
                          .intended = times.intended - measured_from_,
                          .sent = times.sent - measured_from_,
                          .answered = times.answered - measured_from_,
                          .code = answer.status().code(),
                          .tokens = context_.workload.item(ticket.index).tokens};
  if (answer.ok()) record.execution = *answer;
  context_.log->Add(record);
}

void LoadGenerator::Tick() {
  if (context_.tick()) return;
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

bool LoadGenerator::complete() const {
  absl::MutexLock lock(&mutex_);
  return stopped_ || measured_ >= plan_.requests;
}

int64_t LoadGenerator::in_flight() const {
  absl::MutexLock lock(&mutex_);
  return in_flight_;
}

}  // namespace attendant::client
