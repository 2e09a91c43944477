#include <iostream>

#include "absl/synchronization/mutex.h"
#include "client/commands/command_line.h"

int main(int argc, char** argv) {
  // Debian 13's Abseil aborts the process if it finds a cycle in the order in which mutexes are
  // locked, and its gRPC does not tell it when a mutex ends: a new one at an old address can close
  // a cycle that does not exist.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return attendant::client::RunCommandLine(argc, argv, std::cout, std::cerr);
}
