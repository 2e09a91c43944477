// TextCall, one request of a text API.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/execution/compute_job.h"
#include "server/models/served_model.h"
#include "server/rest/body_call.h"
#include "server/text_api/text_form.h"
#include "server/text_calls/text_collector.h"
#include "server/text_calls/text_parts.h"

namespace attendant::server {

struct TextTarget {
  const TextRoute& route;  // which outlives the call
  std::string model;       // that the path names; empty: none
  absl::Duration timeout;  // from the head of the request until the answer is ready
};

// Body -> task -> parts -> jobs -> result -> answer.
//
// A query for late interaction is a part of its own, whose vectors the others go with.
//
// The first part is refused like any request when the queue is full. The others go in as the queue
// has room for this caller: at most stream_window are in flight, and beyond two only while the
// caller has less than its part of the queue waiting, as for the items of a stream. A part that
// finds no memory waits for the end of another one.
//
// All work is done on workers, by one at a time; jobs only leave what they have computed and have
// one go on.
class TextCall final : public BodyCall {
 public:
  TextCall(BodyCallEntry entry, TextTarget target);

 private:
  struct Computed {
    TextPart part;
    ComputeJob::End end;
  };

  absl::Status OnMessage(MessageSlices body) override;
  HttpAnswer AnswerOf(const absl::Status& error) const override;

  // Read the body to a task, find its model, and make room for the result.
  absl::Status ReadTask(MessageSlices body);
  absl::Status FindModel();
  // Cuts inputs that are token ids as texts are cut.
  void CutIds();
  absl::Status BeginResult();
  void Divide();
  // Of an input that may be cut; 0: any number.
  int64_t MostTokens() const;

  // Does all that can be done now, one part at a time, so that other calls get the worker
  // meanwhile.
  absl::Status Work();
  absl::Status Turn();
  absl::Status TakeComputed(Computed computed);
  absl::Status TokenizeNext();
  absl::Status SubmitNext();
  // Returns the request of a part, or of the query alone.
  PartMessage MessageOf(size_t part) const;
  // Returns the error of a part that cannot be divided, in the words of the task.
  absl::Status NameError(const absl::Status& error, size_t part) const;
  absl::Status Submit(ComputeRequest request, Held held, size_t next);
  size_t TakeNext();
  // Keeps the part that was taken until another one has ended; `status` if there is none.
  absl::Status HoldBack(const absl::Status& status);
  // Makes two parts of the one that was taken.
  absl::Status Split(size_t next);
  void OnComputed(Computed computed);
  absl::Status Answer();

  bool MayGoOn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckAwaited() const;
  // Charges the task and the result as it has grown, which have to be within the limit of answers.
  absl::Status ChargeResult();

  const TextTarget target_;
  const absl::Time deadline_;

  // Of the worker that does the work.
  TextTask task_;
  TextWriter write_;  // of the answer
  int64_t task_bytes_ = 0;
  std::shared_ptr<const ServedModel> model_;
  std::optional<TextCollector> collector_;
  std::vector<TextPart> parts_;  // the first one of a task that interacts is its query: no inputs
  size_t taken_ = 0;             // parts whose results are there
  absl::Duration queued_ = {};

  absl::Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // of the parts
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_back_ ABSL_GUARDED_BY(mutex_) = false;  // the next part, until another one ends
  bool working_ ABSL_GUARDED_BY(mutex_) = true;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;  // what jobs compute is not wanted any more
  std::vector<Computed> computed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
