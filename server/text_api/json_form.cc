#include "server/text_api/json_form.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/http/json_answer.h"
#include "server/text_api/json_body.h"

namespace attendant::server {
namespace {

using Type = VectorForm::Type;

// The purposes that no prompt of another name stands for.
constexpr absl::string_view kOwnPurposes[] = {"classification", "clustering", "separation",
                                              "text-matching"};

}  // namespace

VectorForm VectorFormOf(absl::string_view name) {
  if (name == "binary") return {Type::kBinary};
  if (name == "ubinary") return {Type::kUbinary};
  return {Type::kFloat, name == "base64"};
}

void AppendVector(VectorForm form, absl::Span<const float> vector, std::string* to) {
  if (form.type == Type::kFloat) {
    return form.base64 ? AppendBase64(vector, to) : AppendNumbers(vector, to);
  }
  std::string bytes((vector.size() + 7) / 8, '\0');
  for (size_t i = 0; i < vector.size(); ++i) {
    if (vector[i] > 0) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 0x80 >> i % 8);
  }
  const bool is_signed = form.type == Type::kBinary;
  for (char& byte : bytes) byte = static_cast<char>(is_signed ? byte ^ 0x80 : byte);
  if (form.base64) {
    absl::StrAppend(to, "\"", absl::Base64Escape(bytes), "\"");
    return;
  }
  *to += '[';
  for (const char byte : bytes) {
    const int number = is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
    absl::StrAppend(to, to->back() == '[' ? "" : ",", number);
  }
  *to += ']';
}

HttpAnswer VectorsAnswer(const std::string& head, const std::shared_ptr<const DoneText>& done,
                         const std::string& tail) {
  const auto append = [done](size_t index, std::string* to) {
    AppendNumbers(done->Row(index), to);
  };
  return ListAnswer(head, done->inputs(), append, tail);
}

void ReadPurpose(Members& members, const char* name, TextTask& task) {
  const std::string given = members.Name(name);
  if (given.empty()) return;
  const std::string purpose = absl::AsciiStrToLower(given);
  // "query" of "search_query", "retrieval.query" and "nl2code.query".
  const std::string last = purpose.substr(purpose.find_last_of("._") + 1);
  task.preferred_prompts = {purpose};
  if (last == "query") {
    task.preferred_prompts.push_back("query");
  } else if (last == "document" || last == "passage") {
    task.preferred_prompts.insert(task.preferred_prompts.end(), {"document", "passage"});
  } else if (!absl::c_linear_search(kOwnPurposes, purpose)) {
    members.Refuse(name,
                   "\"query\", \"document\" or \"passage\", also after a word as in "
                   "\"search_query\" and \"retrieval.passage\", or \"classification\", "
                   "\"clustering\", \"separation\" or \"text-matching\"",
                   DescribeText(given));
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
