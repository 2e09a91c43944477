#include "server/text_api/json_form.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"

namespace attendant::server {

absl::StatusOr<TextTask> JsonForm::ReadMembers(const TextRequest& request, Members& members) {
  TextTask task;
  task.model = request.model.empty() ? members.Name("model") : request.model;
  Fill(members, task);
  if (!members.status().ok()) return members.status();
  return task;
}

absl::StatusOr<HttpAnswer> JsonForm::Write(TextTask task, TextResult result) {
  const auto finite = [](float number) { return std::isfinite(number); };
  bool all = absl::c_all_of(result.numbers, finite);
  for (const auto& of_input : result.sparse) {
    all = all && absl::c_all_of(of_input, [&](SparseEntry one) { return finite(one.weight); });
  }
  if (!all) {
    return TextError(TextErrorKind::kFailed,
                     "the model's output has NaN or infinity, which JSON does not have");
  }
  auto done = std::make_shared<DoneText>(DoneText{std::move(task), std::move(result)});
  return Answer(std::move(done));
}

void ReadPurpose(Members& members, const char* name, TextTask& task) {
  if (!members.Has(name)) return;
  const std::string purpose = members.Choice(
      name, {"query", "search_query", "retrieval.query", "document", "passage", "search_document",
             "retrieval.passage", "classification", "clustering", "separation", "text-matching"});
  task.preferred_prompts = {purpose};
  if (absl::StrContains(purpose, "query")) {
    task.preferred_prompts.push_back("query");
  } else if (absl::StrContains(purpose, "document") || absl::StrContains(purpose, "passage")) {
    task.preferred_prompts.insert(task.preferred_prompts.end(), {"document", "passage"});
  }
}

std::vector<size_t> BestFirst(absl::Span<const float> scores, size_t most) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(most, order.size()));
  return order;
}

std::string_view Slice(std::string_view text, size_t begin, size_t end) {
  const auto inside = [&](size_t at) {
    return at < text.size() && (text[at] & 0xc0) == 0x80;  // a character
  };
  end = std::min(end, text.size());
  begin = std::min(begin, end);
  while (begin > 0 && inside(begin)) --begin;
  while (inside(end)) ++end;
  return text.substr(begin, end - begin);
}

}  // namespace attendant::server
