// Reloader, which looks at files for changes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace attendant::server {

// Something to reload, such as a Reloaded.
struct ReloadedItem {
  std::string name;  // in the log and as a label of metrics, such as "certificates"
  std::function<absl::StatusOr<bool>()> reload;
};

// Reloads items, and logs what has come of it. One thread at a time.
class Reloader {
 public:
  // Called after each reload that changed something (ok) or failed.
  using OnReload = std::function<void(const std::string& name, bool ok)>;

  Reloader(std::vector<ReloadedItem> items, OnReload on_reload)
      : items_(std::move(items)), on_reload_(std::move(on_reload)) {}

  void ReloadAll() const;

 private:
  const std::vector<ReloadedItem> items_;
  const OnReload on_reload_;
};

}  // namespace attendant::server
