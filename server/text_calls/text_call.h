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

// Body -> task -> parts -> jobs -> result -> response.
//
// The query of late interaction is a part of its own; its vectors are sent with the other parts.
//
// The first part is refused like any request when the queue is full. Further parts are submitted as
// the queue has space for this client: at most stream_window are in flight, and more than two only
// while the client holds less than its share of the queue, as for a stream's items. A part without
// memory waits for another one to end.
//
// Workers do all the work, one at a time; jobs only store their results and resume it.
class TextCall final : public BodyCall {
 public:
  // `route` outlives the call. `model` is from the path, or empty. `timeout` is from the head of
  // the request to the completed response.
  TextCall(BodyCallArgs entry, const TextRoute& route, std::string model, absl::Duration timeout);

 private:
  struct Computed {
    TextPart part;
    ComputeJob::End end;
  };

  absl::Status OnMessage(MessageSlices body) override;
  HttpAnswer AnswerOf(const absl::Status& error) const override;

  // Parse the body into a task, find its model, and allocate the result.
  absl::Status ReadTask(MessageSlices body);
  absl::Status FindModel();
  // Truncates inputs that are token ids: on the right unless the request names a side, because
  // they include special tokens.
  void CutIds();
  absl::Status BeginResult();
  void Divide();
  // Returns the maximum for an input that may be truncated; 0: unlimited.
  int64_t MostTokens() const;

  // Does all work that is possible now, one part at a time, so that other calls can use the worker
  // in between.
  absl::Status Work();
  absl::Status Turn();
  absl::Status TakeComputed(Computed computed);
  absl::Status TokenizeNext();
  absl::Status SubmitNext();
  // Returns the request for a part, or for the query.
  PartMessage MessageOf(const TextPart& part) const;
  absl::Status Submit(ComputeRequest request, Held held);
  // Holds the next part back until another one ends; returns `status` if none is in flight.
  absl::Status HoldBack(const absl::Status& status);
  // Splits the next part in two: it may be too large, or the error is about one of its inputs.
  // Returns the error in terms of the task if the part is indivisible.
  absl::Status SplitNext(const absl::Status& error);
  void OnComputed(Computed computed);
  absl::Status Answer();

  bool MayGoOn() const;
  absl::Status CheckAwaited() const;
  // Charges the task and the result so far, which must be within the limit for responses.
  absl::Status ChargeResult();

  const TextRoute& route_;
  const std::string model_name_;
  const absl::Time deadline_;

  // Used by the worker that has the call.
  TextTask task_;
  TextWriter write_;  // of the response
  int64_t task_bytes_ = 0;
  std::shared_ptr<const ServedModel> model_;
  std::optional<TextCollector> collector_;
  // If the task interacts, the first part is its query, without inputs.
  std::vector<TextPart> parts_;
  size_t next_ = 0;   // index of the next part
  size_t taken_ = 0;  // parts with results
  int64_t in_flight_ = 0;
  bool held_back_ = false;  // the next part waits for another one to end
  absl::Duration queued_ = {};

  absl::Mutex mutex_;
  bool working_ ABSL_GUARDED_BY(mutex_) = true;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;  // the jobs' results are no longer needed
  std::vector<Computed> computed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
