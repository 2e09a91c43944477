#include "engine/checkpoint/files/problems.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace attendant {
namespace {

constexpr size_t kLongestQuote = 200;
constexpr size_t kMostProblems = 1000;
constexpr char kPayload[] = "attendant/problems";  // in a status: one problem per line

}  // namespace

std::string Quoted(absl::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLongestQuote)), cut ? "…'" : "'");
}

void Problems::AddText(std::string problem) {
  if (problems_.size() == kMostProblems) {
    ++left_out_;
  } else if (!absl::c_linear_search(problems_, problem)) {
    problems_.push_back(std::move(problem));
  }
}

absl::Status Problems::ToStatus() const {
  if (problems_.empty()) return absl::OkStatus();
  const int64_t count = static_cast<int64_t>(problems_.size()) + left_out_;
  const std::string more = left_out_ > 0 ? absl::StrCat("and ", left_out_, " more") : "";
  absl::Status status =
      InvalidArgument(subject_, ": ", count > 1 ? absl::StrCat(count, " problems: ") : "",
                      absl::StrJoin(problems_, "; "), more.empty() ? "" : "; ", more);
  std::vector<std::string> lines;
  for (const std::string& problem : problems_)
    lines.push_back(absl::StrCat(subject_, ": ", problem));
  if (!more.empty()) lines.push_back(absl::StrCat(subject_, ": ", more));
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(lines, "\n")));
  return status;
}

std::vector<std::string> ListProblems(const absl::Status& status) {
  if (status.ok()) return {};
  if (const absl::optional<absl::Cord> payload = status.GetPayload(kPayload)) {
    return absl::StrSplit(std::string(*payload), '\n');
  }
  return {std::string(status.message())};
}

}  // namespace attendant
