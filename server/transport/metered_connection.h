// MeteredConnection, which holds memory for what a connection has received of unfinished messages.
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

// A call that receives a message.
struct ReceivingCall {
  Admission& admission;  // outlives the call
  std::string peer;
  // Ends the call. Called at most once, without locks, possibly after the call has ended.
  std::function<void(const absl::Status&)> give_up;
  int64_t allowance = 0;  // bytes that the call is charged with for what it receives
};

// A call receives up to an allowance, which is charged elsewhere, or up to the first window, which
// is not charged. What the connection's unfinished messages take beyond the allowances of its calls
// is held from the memory budget, in the name of their peer, or of the address if they have several
// peers. While that finds no room, calls end, the newest first. A connection that receives 4 MiB
// more is to be cut.
//
// gRPC calls Receive and Send with its locks held. They therefore give nothing back and end no
// call, as that runs other calls; the thread of the timer does so.
//
// Thread-safe. gRPC reads a connection on one thread at a time, so the lock is hardly contended.
class MeteredConnection : public std::enable_shared_from_this<MeteredConnection> {
 public:
  // A call that receives messages on a connection, until the object is destroyed. One thread at a
  // time.
  class Receiver {
   public:
    // Throws std::bad_alloc.
    Receiver(std::shared_ptr<MeteredConnection> connection, ReceivingCall call);
    ~Receiver();
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    void SetAllowance(int64_t bytes);
    // Returns the bytes received of the unfinished message of the connection that has most of them,
    // thus at least the bytes received for this call.
    int64_t received() const;
    // To be called when a message of this many bytes has arrived whole: what the connection held
    // for it goes to `hold`, which is the allowance of the call.
    void TakeOver(int64_t bytes, Budget::Hold& hold);

   private:
    const std::shared_ptr<MeteredConnection> connection_;
    uint64_t id_ = 0;
  };

  // `name` is what ConnectionOf returns for the calls of the connection.
  MeteredConnection(int socket, bool encrypted, std::string name);

  const std::string& name() const { return name_; }
  bool encrypted() const { return encrypted_; }
  // Returns whether the descriptor still belongs to this connection. gRPC closes it unseen.
  bool HasSocket() const;
  // Resets the connection, if it still has its socket.
  void Cut();
  bool is_cut() const { return cut_; }

  // The connection has received these bytes. Returns false if it must be cut.
  bool Receive(absl::string_view bytes) noexcept;
  // The connection has sent these bytes.
  void Send(absl::string_view bytes);
  // The connection is closed: nothing more is held for it.
  void Close();

 private:
  // Whether a call receives that has not been given up.
  bool IsAwaited() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ChargeExcess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Charge(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndCalls(int64_t uncharged, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Excess() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives back what is held beyond the excess, a moment later.
  void GiveBackSoon() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack();

  const std::string name_;
  const bool encrypted_;
  const int socket_;
  const std::optional<uint64_t> number_;  // of the socket, for the kernel
  std::atomic<bool> cut_ = false;

  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  FrameMeter meter_ ABSL_GUARDED_BY(mutex_);
  // By id, thus the oldest first. `give_up` is null once it has been called.
  std::map<uint64_t, ReceivingCall> calls_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  Budget::Hold held_ ABSL_GUARDED_BY(mutex_);
  // Bytes that calls which were given up have received, until gRPC drops them.
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool gives_back_ ABSL_GUARDED_BY(mutex_) = false;  // GiveBack is to come
};

}  // namespace attendant::server
