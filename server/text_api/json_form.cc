#include "server/text_api/json_form.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"

namespace attendant::server {

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

std::string WordOf(const std::string& text, const v1::TextTokens& tokens, int first, int last) {
  const auto inside = [&](size_t at) {
    return at < text.size() && (text[at] & 0xc0) == 0x80;  // a character
  };
  size_t end = std::min<size_t>(tokens.byte_ends(last), text.size());
  size_t begin = std::min<size_t>(tokens.byte_begins(first), end);
  while (begin > 0 && inside(begin)) --begin;
  while (inside(end)) ++end;
  return text.substr(begin, end - begin);
}

}  // namespace attendant::server
