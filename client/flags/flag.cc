#include "client/flags/flag.h"

#include "absl/strings/str_split.h"

namespace attendant::client {

void Append(const char* group, Flags rows, Flags& flags) {
  for (Flag& row : rows) {
    row.group = group;
    flags.push_back(std::move(row));
  }
}

std::vector<std::string> NamesIn(const char* names) {
  return absl::StrSplit(names, ' ', absl::SkipEmpty());
}

}  // namespace attendant::client
