#include "server/host/periodic.h"

#include <utility>

#include "server/base/fault.h"

namespace attendant::server {

Periodic::Periodic(absl::Duration interval, std::function<void()> call)
    : interval_(interval), call_(std::move(call)) {
  thread_ = std::thread([this] { Run(); });
}

Periodic::~Periodic() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void Periodic::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), interval_)) return;
    }
    Guarded([this] { call_(); }).IgnoreError();
  }
}

}  // namespace attendant::server
