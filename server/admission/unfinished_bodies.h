// UnfinishedBodies, which tells how much has arrived of bodies that have not arrived whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

// gRPC hands out a message when it has all of it, and tells nothing before. The kernel, however,
// knows what each connection has received. What a connection has received since the reading of the
// oldest of its unfinished bodies began, without the messages that came whole since, is at least
// what all of them hold together, but for the first window of each, which may have come before.
//
// Thread-safe.
class UnfinishedBodies {
 public:
  // Bytes of a body that may arrive before anybody reads it: HTTP/2's first window.
  static constexpr int64_t kFirstWindow = int64_t{64} << 10;

  // Returns the bytes that a connection has received so far; none if that is not known.
  using Received = std::function<std::optional<int64_t>(const std::string& connection)>;

  // A body from the start of its reading to its end. UnfinishedBodies must outlive it. One thread
  // at a time.
  class Body {
   public:
    // Forgets the body, of which nobody knows how much had come.
    ~Body();
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

    // The body has arrived, with this many bytes.
    void Finish(int64_t bytes);

    // Returns what this body has to be charged with: its first window, and the bytes that the
    // connection's unfinished bodies may hold beyond what the others are charged with. None: not
    // known.
    std::optional<int64_t> Measure() const;
    void Charge(int64_t bytes);

   private:
    friend class UnfinishedBodies;
    explicit Body(std::string connection) : connection_(std::move(connection)) {}
    const std::string connection_;
    UnfinishedBodies* bodies_ = nullptr;  // null before it has begun, and once it has ended
    uint64_t id_ = 0;
  };

  // The item that a stream waits for. A stream may wait for hours, so this is no body, and changes
  // nothing of what bodies are charged with. It only tells how much the item can have come to.
  // UnfinishedBodies must outlive it. One thread at a time.
  class AwaitedItem {
   public:
    AwaitedItem(UnfinishedBodies& bodies, std::string connection);
    ~AwaitedItem();
    AwaitedItem(const AwaitedItem&) = delete;
    AwaitedItem& operator=(const AwaitedItem&) = delete;

    // The stream waits from now on, and is charged with these bytes meanwhile.
    void Begin(int64_t charged);
    // Returns whether the bytes received for the item are known.
    bool measured() const { return begun_.has_value(); }
    // The item has arrived, with this many bytes; 0 if none will.
    void Finish(int64_t bytes);

    // Returns the bytes that the connection has received since Begin beyond those of whole
    // messages, and beyond what the stream and the connection's unfinished bodies are charged with:
    // the item may take that much without being charged for it. What came of bodies that were given
    // up since is included, because nobody knows how much that was. 0 if no item is waited for, or
    // nothing is known.
    int64_t Unexplained() const;

   private:
    UnfinishedBodies& bodies_;
    const std::string connection_;
    std::optional<int64_t> begun_;  // what had come until Begin, but in whole messages
    int64_t charged_ = 0;
  };

  // Without this, nothing is known. To be called before the first body begins.
  void Watch(Received received) { received_ = std::move(received); }

  // `charged`: what the body is charged with from the start, in bytes.
  std::unique_ptr<Body> Begin(const std::string& connection, int64_t charged);

 private:
  struct Entry {
    int64_t received;  // by the connection when the body began
    int64_t finished;  // bytes of messages that came whole since
    int64_t charged;
  };
  using Entries = std::map<uint64_t, Entry>;  // by id, thus the oldest first
  struct Connection {
    Entries bodies;
    int64_t awaited_items = 0;
    int64_t finished = 0;  // bytes of messages that came whole
    bool empty() const { return bodies.empty() && awaited_items == 0; }
  };

  std::optional<int64_t> BytesOf(const std::string& connection) const;
  void End(const std::string& connection, uint64_t id, int64_t bytes);
  // A message that is no body has arrived.
  void CountMessage(const std::string& connection, int64_t bytes);

  Received received_;
  mutable absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // Not Abseil's map, which breaks if it finds no memory to grow.
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
