// Reloaded, a value parsed from files that follows their changes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

class ServerMetrics;

// Returns the contents of all files. An error names the file that cannot be read or exceeds 1 MiB.
absl::StatusOr<std::vector<std::string>> ReadFiles(const std::vector<std::string>& paths);

// Keeps the value of the last valid files. Thread-safe.
template <typename Value>
class Reloaded {
 public:
  // Makes the value from the contents of the files, or returns why they are invalid.
  using Make = std::function<absl::StatusOr<Value>(const std::vector<std::string>& contents)>;

  static absl::StatusOr<std::unique_ptr<Reloaded>> Load(std::vector<std::string> paths, Make make) {
    std::unique_ptr<Reloaded> reloaded(new Reloaded(std::move(paths), std::move(make)));
    if (absl::StatusOr<bool> loaded = reloaded->Reload(); !loaded.ok()) return loaded.status();
    return reloaded;
  }

  // Reads the files again. Returns true if the value is new, and false if the files are unchanged
  // since the last call, valid or not. An error is therefore returned once; the value then stays
  // the same.
  absl::StatusOr<bool> Reload() {
    // Compares contents, because neither times nor sizes reveal every change, and files that change
    // together may be read halfway.
    absl::StatusOr<std::vector<std::string>> contents = ReadFiles(paths_);
    absl::MutexLock lock(&mutex_);
    if (contents == seen_) return false;
    absl::StatusOr<Value> value = contents.ok() ? make_(*contents) : contents.status();
    absl::Status status = value.status();
    std::shared_ptr<const Value> made;
    if (status.ok()) made = std::make_shared<const Value>(*std::move(value));
    seen_ = std::move(contents);  // last, so that lack of memory makes it read them again
    if (!status.ok()) return status;
    current_ = std::move(made);
    return true;
  }

  // Returns the value; the same object until it changes.
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

// `changed` is the result of Reloaded::Reload. Logs and counts a reload that succeeded or failed;
// ignores unchanged files. `what` is, for example, "certificates".
void ReportReload(const std::string& what, const absl::StatusOr<bool>& changed,
                  ServerMetrics& metrics);

}  // namespace attendant::server
