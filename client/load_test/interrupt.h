// InterruptWatch, which takes SIGINT as a request to end early.
#pragma once

#include <signal.h>

namespace attendant::client {

// During its lifetime, the first SIGINT (Ctrl-C) only sets a flag; a second one ends the process as
// usual. There may be one object at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();

  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const;

 private:
  struct sigaction previous_;
};

}  // namespace attendant::client
