// Reloaded, a value that is made of files and follows their changes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/security/read_files.h"

namespace attendant::server {

// Whatever the files become, the value is that of the last good ones. Thread-safe.
template <typename Value>
class Reloaded {
 public:
  // Makes the value from the contents of the files, or says what is wrong with them.
  using Make = std::function<absl::StatusOr<Value>(const std::vector<std::string>& contents)>;

  static absl::StatusOr<std::unique_ptr<Reloaded>> Load(std::vector<std::string> paths, Make make) {
    std::unique_ptr<Reloaded> reloaded(new Reloaded(std::move(paths), std::move(make)));
    if (absl::StatusOr<bool> loaded = reloaded->Reload(); !loaded.ok()) return loaded.status();
    return reloaded;
  }

  // Reads the files again. Returns true if the value is a new one, and false if the files are what
  // they were at the last call, good or bad. An error is therefore told once: the files have become
  // bad, and the value stays.
  absl::StatusOr<bool> Reload() {
    // The contents are compared, since neither the time of a change nor the size reveals every
    // change, and since files that change together are seen half changed.
    absl::StatusOr<std::vector<std::string>> contents = ReadFiles(paths_);
    absl::MutexLock lock(&mutex_);
    if (contents == seen_) return false;
    absl::StatusOr<Value> value = contents.ok() ? make_(*contents) : contents.status();
    std::shared_ptr<const Value> made;
    if (value.ok()) made = std::make_shared<const Value>(*std::move(value));
    seen_ = std::move(contents);  // last, so that they are read again if there was no memory
    if (made == nullptr) return value.status();
    current_ = std::move(made);
    return true;
  }

  // Returns the value, the same object until it is a new one.
  std::shared_ptr<const Value> current() const {
    absl::MutexLock lock(&mutex_);
    return current_;
  }

 private:
  Reloaded(std::vector<std::string> paths, Make make)
      : paths_(std::move(paths)), make_(std::move(make)) {}

  const std::vector<std::string> paths_;
  const Make make_;
  mutable absl::Mutex mutex_;
  absl::StatusOr<std::vector<std::string>> seen_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Value> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
