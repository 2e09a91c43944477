// TcpGate, which carries TCP connections between callers and a server, and can do so badly.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant {

// Forwards every connection to a port of 127.0.0.1, in pieces of up to 1 KiB, and keeps only a few
// kilobytes that it has not carried yet. What the gate is told holds for the connections that it
// has and for those to come. Thread-safe.
class TcpGate {
 public:
  explicit TcpGate(int port);
  // Cuts what it still carries.
  ~TcpGate();
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;

  int port() const { return own_port_; }
  std::string address() const;

  // Carries about `after` further bytes of requests, or of answers, and then none.
  void StallRequests(int64_t after = 0);
  void StallAnswers(int64_t after = 0);
  // Carries everything again.
  void Resume();
  // Waits for `each_piece` before each piece: the other end seems far away, and reads slowly.
  void Delay(absl::Duration each_piece);
  // Closes the connections that it has, with whatever they had still to carry.
  void Cut();

 private:
  struct Link {
    int caller, server;
    bool cut = false;
    std::thread requests, answers;
  };

  using Left = int64_t TcpGate::*;  // one of the two below

  void Accept();
  // Carries until either end closes the connection or it is cut.
  void Carry(const Link& link, int from, int to, Left left);
  // Waits until `bytes` may be carried; false if the connection is cut before.
  bool AwaitLeave(const Link& link, Left left, int64_t bytes);

  const int port_;
  const int listener_;
  int own_port_ = 0;
  absl::Mutex mutex_;
  int64_t requests_left_ ABSL_GUARDED_BY(mutex_);
  int64_t answers_left_ ABSL_GUARDED_BY(mutex_);
  absl::Duration pause_ ABSL_GUARDED_BY(mutex_);
  std::list<Link> links_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace attendant
