// Cohere's /v2/embed, and the rerank of Cohere and Jina.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/text_api/json_answer.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

// A random UUID, in quotes.
std::string NewId() {
  std::random_device source;
  return absl::StrFormat("\"%08x-%04x-4%03x-a%03x-%08x%04x\"", source(), source() & 0xffff,
                         source() & 0xfff, source() & 0xfff, source(), source() & 0xffff);
}

class CohereEmbed final : public JsonForm {
 protected:
  void Fill(Members& members, TextTask& task) override {
    for (const char* other : {"images", "inputs"}) {
      if (members.Has(other)) members.Refuse(other, "no value (only texts are embedded)", "one");
    }
    task.field = "texts";
    task.inputs = members.Texts("texts");
    task.normalize = true;
    task.dimensions = members.Count("output_dimension");
    task.truncation = members.Truncation();
    ReadPurpose(members, "input_type", task);
    types_ = members.Names("embedding_types").value_or(std::vector<std::string>{"float"});
    for (size_t i = 0; i < types_.size(); ++i) {
      if (types_[i] == "float" || types_[i] == "base64") continue;
      members.Refuse(absl::StrCat("embedding_types[", i, "]"), "\"float\" or \"base64\"",
                     Describe({types_[i]}));
    }
    std::sort(types_.begin(), types_.end());
    types_.erase(std::unique(types_.begin(), types_.end()), types_.end());
    if (types_.empty()) types_ = {"float"};
  }

  // Lists of vectors of each type, and behind them the texts.
  HttpAnswer Answer(std::shared_ptr<const DoneText> done) const override {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"id\":", NewId(), ",\"response_type\":\"embeddings_by_type\",\"meta\":{\"api_version\":",
        "{\"version\":\"2\"},\"billed_units\":{\"input_tokens\":", tokens, "}},\"embeddings\":{");
    const size_t inputs = done->inputs();
    const auto append = [done = std::move(done), types = types_](size_t at, std::string* to) {
      const size_t list = at / done->inputs(), index = at % done->inputs();
      const bool text = list == types.size();
      if (index == 0) absl::StrAppend(to, "\"", text ? "texts" : types[list], "\":[");
      if (text) {
        *to += QuoteJson(done->task.inputs[index].text);
      } else if (types[list] == "base64") {
        AppendBase64(done->Row(index), to);
      } else {
        AppendNumbers(done->Row(index), to);
      }
      if (index + 1 < done->inputs()) return;
      *to += list + 1 == types.size() ? "]}" : "]";
    };
    return ListAnswer(head, inputs * (types_.size() + 1), append, "}");
  }

 private:
  std::vector<std::string> types_;
};

// The answer has the members of both APIs. Documents are cut where the model's longest sequence
// ends, whatever max_tokens_per_doc says.
class Rerank final : public JsonForm {
 protected:
  void Fill(Members& members, TextTask& task) override {
    task.wish = TextWish::kScores;
    task.scores = ScoresFor::kRanking;
    task.field = "documents";
    task.query = members.Text("query");
    task.inputs = members.Texts("documents", true);
    task.truncation = members.limits().truncate ? v1::TRUNCATE_RIGHT : v1::NO_TRUNCATION;
    top_n_ = members.Count("top_n").value_or(std::numeric_limits<int64_t>::max());
    members.Count("max_tokens_per_doc");
    with_documents_ = members.Flag("return_documents", false);
  }

  HttpAnswer Answer(std::shared_ptr<const DoneText> done) const override {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"id\":", NewId(), ",\"object\":\"list\",\"model\":", QuoteJson(done->result.model),
        ",\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens,
        "},\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":{\"search_units\":1},",
        "\"tokens\":{\"input_tokens\":", tokens, "}},\"results\":[");
    const auto order = BestFirst(done->result.numbers, static_cast<size_t>(top_n_));
    const auto append = [done, order, with = with_documents_](size_t place, std::string* to) {
      const size_t index = order[place];
      absl::StrAppend(to, "{\"index\":", index, ",\"relevance_score\":");
      AppendNumber(done->result.numbers[index], to);
      if (with) {
        const std::string text = QuoteJson(done->task.inputs[index].text);
        absl::StrAppend(to, ",\"document\":{\"text\":", text, "}");
      }
      *to += '}';
    };
    return ListAnswer(head, order.size(), append, "]}");
  }

 private:
  int64_t top_n_ = 0;
  bool with_documents_ = false;
};

}  // namespace

std::unique_ptr<JsonForm> MakeCohereEmbed() { return std::make_unique<CohereEmbed>(); }
std::unique_ptr<JsonForm> MakeRerank() { return std::make_unique<Rerank>(); }

}  // namespace attendant::server
