// MeteredConnection, which charges the memory budget for unfinished messages of a connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/admission.h"
#include "server/transport/frame_meter.h"

namespace attendant::server {

// A call that is receiving a message.
struct ReceivingCall {
  Admission& admission;  // outlives the call
  std::string peer;
  // Ends the call. Called at most once, without locks, possibly after the call has ended.
  std::function<void(const absl::Status&)> give_up;
  int64_t allowance = 0;  // received bytes for which the call is already charged
};

// A call receives up to an allowance, which is charged elsewhere, or up to the uncharged first
// window. Unfinished messages beyond their calls' allowances are charged to the memory budget, in
// the name of their peer, or of the address if they have several peers. While there is no room for
// them, calls are ended, newest first. A connection that receives another 4 MiB meanwhile must be
// cut.
//
// gRPC calls Receive and Send with its locks held. They therefore release nothing and end no calls,
// because that runs other calls; the timer's thread does so.
//
// Thread-safe. gRPC reads a connection on one thread at a time, so that the lock is hardly
// contended.
class MeteredConnection : public std::enable_shared_from_this<MeteredConnection> {
 public:
  // A call that receives messages on a connection, until destroyed. Not thread-safe.
  class Receiver {
   public:
    // Throws std::bad_alloc.
    Receiver(std::shared_ptr<MeteredConnection> connection, ReceivingCall call);
    ~Receiver();
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    void SetAllowance(int64_t bytes);
    // Returns the bytes received of the connection's largest unfinished message, which are at least
    // those of this call.
    int64_t received() const;
    // Call when a message of this size has arrived: moves the memory held for it to `hold`, the
    // call's allowance.
    void TakeOver(int64_t bytes, Budget::Reservation& hold);

   private:
    const std::shared_ptr<MeteredConnection> connection_;
    uint64_t id_ = 0;
  };

  // `name` is the result of ConnectionOf for the connection's calls.
  MeteredConnection(int socket, bool encrypted, std::string name);

  const std::string& name() const { return name_; }
  bool encrypted() const { return encrypted_; }
  // Returns whether the descriptor still belongs to this connection. gRPC may have closed it.
  bool HasSocket() const;
  // Resets the connection if it still has its socket.
  void Cut();
  bool is_cut() const { return cut_; }

  // Records received bytes. Returns false if the connection must be cut.
  bool Receive(absl::string_view bytes) noexcept;
  // Records sent bytes.
  void Send(absl::string_view bytes);
  // Records that the connection is closed, and releases its memory.
  void Close();

 private:
  // Whether a call is receiving that has not been given up.
  bool IsAwaited() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ChargeExcess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Charge(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndCalls(int64_t uncharged, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Excess() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases held memory beyond the excess, a moment later.
  void GiveBackSoon() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack();

  const std::string name_;
  const bool encrypted_;
  const int socket_;
  const std::optional<uint64_t> number_;  // of the socket, from the kernel
  std::atomic<bool> cut_ = false;

  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  FrameMeter meter_ ABSL_GUARDED_BY(mutex_);
  // By id, oldest first. `give_up` is null once called.
  std::map<uint64_t, ReceivingCall> calls_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  Budget::Reservation held_ ABSL_GUARDED_BY(mutex_);
  // Bytes received by calls that were given up, until gRPC drops them.
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool gives_back_ ABSL_GUARDED_BY(mutex_) = false;  // GiveBack is scheduled
};

}  // namespace attendant::server
