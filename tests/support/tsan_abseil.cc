// Annotations that tell ThreadSanitizer which accesses Abseil's locks order. The distribution's
// Abseil is not instrumented, so that everything that a Mutex guards looks like a race. These
// definitions take precedence over those of the shared library, even for its own calls. Each calls
// the original function and marks the order that it establishes.
#include <dlfcn.h>

#include <cstring>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);

namespace {

// Returns the library's own version of the function at `ours`. Its mangled name depends on the
// release of Abseil, so it is looked up.
template <typename Function>
Function Original(const void* ours) {
  Dl_info info;
  Function original = nullptr;
  if (dladdr(ours, &info) != 0 && info.dli_sname != nullptr) {
    void* found = dlsym(RTLD_NEXT, info.dli_sname);
    std::memcpy(&original, &found, sizeof(original));
  }
  return original;
}

// Returns the address of a non-virtual member function, which is a plain function that takes `this`
// (Itanium C++ ABI).
template <typename Member>
const void* Address(Member member) {
  const void* address;
  std::memcpy(&address, &member, sizeof(address));
  return address;
}

// Locking and unlocking evaluate, with the lock held, the conditions of other threads that are in
// Await.
class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

void Release(const volatile void* address) { __tsan_release(const_cast<void*>(address)); }
void Acquire(const volatile void* address) { __tsan_acquire(const_cast<void*>(address)); }

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const auto original = Original<void (*)(Mutex*)>(Address(&Mutex::Lock));
  {
    IgnoreReads ignore;
    original(this);
  }
  Acquire(this);
}

bool Mutex::TryLock() {
  static const auto original = Original<bool (*)(Mutex*)>(Address(&Mutex::TryLock));
  const bool locked = original(this);
  if (locked) Acquire(this);
  return locked;
}

void Mutex::Unlock() {
  static const auto original = Original<void (*)(Mutex*)>(Address(&Mutex::Unlock));
  Release(this);
  IgnoreReads ignore;
  original(this);
}

void Mutex::ReaderLock() {
  static const auto original = Original<void (*)(Mutex*)>(Address(&Mutex::ReaderLock));
  {
    IgnoreReads ignore;
    original(this);
  }
  Acquire(this);
}

void Mutex::ReaderUnlock() {
  static const auto original = Original<void (*)(Mutex*)>(Address(&Mutex::ReaderUnlock));
  Release(this);
  IgnoreReads ignore;
  original(this);
}

void Mutex::Await(const Condition& condition) {
  static const auto original = Original<void (*)(Mutex*, const Condition&)>(Address(&Mutex::Await));
  Release(this);
  {
    IgnoreReads ignore;
    original(this, condition);
  }
  Acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const auto original =
      Original<bool (*)(Mutex*, const Condition&, Duration)>(Address(&Mutex::AwaitWithTimeout));
  Release(this);
  bool met;
  {
    IgnoreReads ignore;
    met = original(this, condition, timeout);
  }
  Acquire(this);
  return met;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const auto original =
      Original<bool (*)(Mutex*, const Condition&, Time)>(Address(&Mutex::AwaitWithDeadline));
  Release(this);
  bool met;
  {
    IgnoreReads ignore;
    met = original(this, condition, deadline);
  }
  Acquire(this);
  return met;
}

void CondVar::Wait(Mutex* mutex) {
  static const auto original = Original<void (*)(CondVar*, Mutex*)>(Address(&CondVar::Wait));
  Release(mutex);
  {
    IgnoreReads ignore;
    original(this, mutex);
  }
  Acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const auto original =
      Original<bool (*)(CondVar*, Mutex*, Duration)>(Address(&CondVar::WaitWithTimeout));
  Release(mutex);
  bool timed_out;
  {
    IgnoreReads ignore;
    timed_out = original(this, mutex, timeout);
  }
  Acquire(mutex);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const auto original =
      Original<bool (*)(CondVar*, Mutex*, Time)>(Address(&CondVar::WaitWithDeadline));
  Release(mutex);
  bool timed_out;
  {
    IgnoreReads ignore;
    timed_out = original(this, mutex, deadline);
  }
  Acquire(mutex);
  return timed_out;
}

void Notification::Notify() {
  static const auto original = Original<void (*)(Notification*)>(Address(&Notification::Notify));
  // HasBeenNotified is inline and reads a flag inside this object.
  for (size_t i = 0; i < sizeof(*this); i += alignof(Notification)) {
    Release(reinterpret_cast<const char*>(this) + i);
  }
  original(this);
}

void Notification::WaitForNotification() const {
  static const auto original =
      Original<void (*)(const Notification*)>(Address(&Notification::WaitForNotification));
  original(this);
  Acquire(this);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const auto original = Original<bool (*)(const Notification*, Duration)>(
      Address(&Notification::WaitForNotificationWithTimeout));
  const bool notified = original(this, timeout);
  if (notified) Acquire(this);
  return notified;
}

bool BlockingCounter::DecrementCount() {
  static const auto original =
      Original<bool (*)(BlockingCounter*)>(Address(&BlockingCounter::DecrementCount));
  Release(this);
  return original(this);
}

void BlockingCounter::Wait() {
  static const auto original =
      Original<void (*)(BlockingCounter*)>(Address(&BlockingCounter::Wait));
  original(this);
  Acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
