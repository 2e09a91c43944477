#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/bash_completion.h"
#include "server/settings/settings_table.h"

namespace attendant::server {
namespace {

using Kind = proto::CompletionValue::Kind;

proto::CompletionValue ValueOf(const SettingRow& row) {
  if (!row.kind.choices.empty()) return {Kind::kChoice, row.kind.choices};
  for (const char* path : {"FILE", "DIR", "SOURCE"}) {
    if (absl::StrContains(row.placeholder, path)) return {Kind::kFile};
  }
  return {Kind::kAny};
}

}  // namespace

std::string BashCompletion() {
  proto::CompletionCommand flags;
  flags.flags = {{"--config", {Kind::kFile}},
                 {"--pull", {Kind::kAny}},
                 {"--describe", {Kind::kFile}},
                 {"--json", {}},
                 {"--ranks", {}},
                 {"--help", {}},
                 {"--version", {}},
                 {"--completion", {Kind::kChoice, {"bash"}}}};
  for (const SettingRow& row : SettingsTable()) {
    flags.flags.push_back({absl::StrCat("--", row.name), ValueOf(row)});
  }
  return proto::BashCompletion("attendant-server", {flags});
}

}  // namespace attendant::server
