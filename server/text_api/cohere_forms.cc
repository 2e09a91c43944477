// Cohere's /v2/embed, and the rerank of Cohere and Jina.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

// A random UUID, in quotes.
std::string NewId() {
  std::random_device source;
  return absl::StrFormat("\"%08x-%04x-4%03x-a%03x-%08x%04x\"", source(), source() & 0xffff,
                         source() & 0xfff, source() & 0xfff, source(), source() & 0xffff);
}

}  // namespace

// Lists of vectors by type, followed by the texts.
TextWriter ReadCohereEmbed(Members& members, TextTask& task) {
  for (const char* other : {"images", "inputs"}) {
    if (members.Has(other)) members.Refuse(other, "no value (only texts are embedded)", "a value");
  }
  task.field = "texts";
  task.inputs = members.Texts("texts");
  task.normalize = true;
  task.dimensions = members.Count("output_dimension");
  task.truncation = members.Truncation();
  ReadPurpose(members, "input_type", task);
  auto types = members.Names("embedding_types").value_or(std::vector<std::string>{"float"});
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "float" || types[i] == "base64") continue;
    members.Refuse(absl::StrCat("embedding_types[", i, "]"), "\"float\" or \"base64\"",
                   Describe({types[i]}));
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  if (types.empty()) types = {"float"};
  return [types](const std::shared_ptr<const DoneText>& done) {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"id\":", NewId(), ",\"response_type\":\"embeddings_by_type\",\"meta\":{\"api_version\":",
        "{\"version\":\"2\"},\"billed_units\":{\"input_tokens\":", tokens, "}},\"embeddings\":{");
    const auto append = [done, types](size_t at, std::string* to) {
      const size_t list = at / done->inputs(), index = at % done->inputs();
      const bool text = list == types.size();
      if (index == 0) absl::StrAppend(to, "\"", text ? "texts" : types[list], "\":[");
      if (text) {
        *to += text::QuoteJson(done->task.inputs[index].text);
      } else if (types[list] == "base64") {
        AppendBase64(done->Row(index), to);
      } else {
        AppendNumbers(done->Row(index), to);
      }
      if (index + 1 < done->inputs()) return;
      *to += list + 1 == types.size() ? "]}" : "]";
    };
    return ListAnswer(head, done->inputs() * (types.size() + 1), append, "}");
  };
}

// The answer has the members of both APIs. Documents are cut where the model's longest sequence
// ends, whatever max_tokens_per_doc says.
TextWriter ReadRerank(Members& members, TextTask& task) {
  task.wish = TextWish::kScores;
  task.scores = ScoresFor::kRanking;
  task.field = "documents";
  task.query = members.Text("query");
  task.inputs = members.Texts("documents", true);
  task.truncation = members.limits().truncate ? v1::TRUNCATE_RIGHT : v1::NO_TRUNCATION;
  const int64_t top_n = members.Count("top_n").value_or(std::numeric_limits<int64_t>::max());
  members.Count("max_tokens_per_doc");
  const bool with_documents = members.Flag("return_documents", false);
  return [top_n, with_documents](const std::shared_ptr<const DoneText>& done) {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"id\":", NewId(), ",\"object\":\"list\",\"model\":", text::QuoteJson(done->result.model),
        ",\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens,
        "},\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":{\"search_units\":1},",
        "\"tokens\":{\"input_tokens\":", tokens, "}},\"results\":[");
    const auto order = BestFirst(done->result.numbers, static_cast<size_t>(top_n));
    const auto append = [done, order, with_documents](size_t place, std::string* to) {
      const size_t index = order[place];
      absl::StrAppend(to, "{\"index\":", index, ",\"relevance_score\":");
      AppendNumber(done->result.numbers[index], to);
      if (with_documents) {
        const std::string text = text::QuoteJson(done->task.inputs[index].text);
        absl::StrAppend(to, ",\"document\":{\"text\":", text, "}");
      }
      *to += '}';
    };
    return ListAnswer(head, order.size(), append, "]}");
  };
}

}  // namespace attendant::server
