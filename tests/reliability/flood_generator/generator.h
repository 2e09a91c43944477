// Generator, which keeps hostile connections open and sends on all of them at full speed.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/reliability/flood_generator/attack.h"
#include "tests/reliability/flood_generator/connection.h"

namespace attendant::flood {

struct Sent {
  int64_t bytes = 0;        // before encryption
  int64_t connections = 0;  // that were made, with the handshake of TLS
  double seconds = 0;
};

// Runs on the thread that calls Run. The server and its good caller may share two cores with it:
// one thread sends faster than a server can parse, and more would only take CPU time from the
// server, so that the figures would show the generator's load instead of the attack's.
class Generator {
 public:
  // One connection from each of `sources`, which repeat an address for more; a Unix socket ignores
  // them. `attack` is a name that MakeAttack takes.
  Generator(const Target& target, std::vector<std::string> sources, std::string attack);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Floods for this long, or until a signal sets `stopped`.
  Sent Run(std::chrono::duration<double> duration, const volatile std::sig_atomic_t& stopped);

 private:
  struct Slot {
    std::unique_ptr<Attack> attack;
    std::unique_ptr<Connection> connection;  // null until it can be connected
    std::string_view unsent;
    uint32_t events = 0;  // that epoll watches
    bool open = false;
  };

  // Connects anew.
  void Open(size_t number);
  // Returns whether no slot is without a connection then.
  bool OpenAllClosed();
  void OnEvents(size_t number, uint32_t events);
  // Each returns false if the connection is closed.
  bool Advance(Slot& slot);
  bool Exchange(Slot& slot, uint32_t events);
  // Watches for what the slot waits for.
  void Watch(size_t number, uint32_t events);
  uint32_t Wanted(const Slot& slot) const;

  const Target target_;
  const std::vector<std::string> sources_;
  const std::string attack_;
  const int epoll_;
  std::vector<Slot> slots_;
  std::vector<char> received_;
  Sent sent_;
};

}  // namespace attendant::flood
