// SmallReceipt, what a message that holds hardly more than a name may take while it is received.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/admission/awaited_messages.h"
#include "server/admission/unfinished_bodies.h"

namespace attendant::server {

// From the start of the reading to its end. One thread at a time.
//
// gRPC receives whatever a message announces, so a small one that is announced as a large one is
// looked at early and again whenever that time has doubled.
class SmallReceipt {
 public:
  // `caller` loses its oldest message if all callers together await too many: `give_up` as in
  // AwaitedMessages. `connection` is the caller's, as UnfinishedBodies takes it. `admission`
  // outlives the receipt. The message has `time`, or less if nobody can tell what has come of it.
  SmallReceipt(Admission& admission, const std::string& caller, const std::string& connection,
               AwaitedMessages::GiveUp give_up, absl::Duration time);

  // When to call Look next, by the real clock.
  absl::Time next_look() const;

  // Returns DEADLINE_EXCEEDED if the message had its time, INVALID_ARGUMENT if it has become too
  // large for a small one.
  absl::Status Look();

  // The message has arrived, with this many bytes.
  void Finish(int64_t bytes) { item_.Finish(bytes); }

 private:
  const absl::Time begun_;
  absl::Time until_;
  absl::Duration looked_ = absl::ZeroDuration();  // at the last look, since `begun_`
  UnfinishedBodies::AwaitedItem item_;
  const std::unique_ptr<AwaitedMessages::Place> place_;
};

// The error of a message that has to make room.
absl::Status TooManyAwaitedError();

}  // namespace attendant::server
