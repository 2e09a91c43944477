// Cohere's embed, and the rerank of Cohere, Jina and Voyage.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_body.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

// A random UUID, in quotes.
std::string NewId() {
  std::random_device source;
  return absl::StrFormat("\"%08x-%04x-4%03x-a%03x-%08x%04x\"", source(), source() & 0xffff,
                         source() & 0xfff, source() & 0xfff, source(), source() & 0xffff);
}

// Returns the beginning of a response, up to its vectors.
std::string EmbedHead(const DoneText& done, const char* version, const char* type) {
  return absl::StrCat("{\"id\":", NewId(), ",\"response_type\":\"", type,
                      "\",\"meta\":{\"api_version\":{\"version\":\"", version,
                      "\"},\"billed_units\":{\"input_tokens\":", done.result.total_tokens(),
                      "}},\"embeddings\":");
}

void FillEmbed(Members& members, TextTask& task) {
  const bool has_inputs = members.Has("inputs");
  members.RefuseGiven("images", "not supported; only texts are embedded");
  if (members.Has("texts")) members.RefuseGiven("inputs", "cannot be combined with texts");
  members.RefuseGiven("max_tokens",
                      "not supported; texts are truncated at the model's maximum length");
  task.field = has_inputs ? "inputs" : "texts";
  task.inputs = has_inputs ? members.Contents("inputs") : members.Texts("texts");
  task.normalize = true;
  task.dimensions = members.Count("output_dimension");
  task.truncation = members.Truncation();
  ReadPurpose(members, "input_type", task);
}

// Lists of vectors by type, or one list of numbers, followed by the texts.
TextWriter ReadEmbed(const char* version, bool by_type, Members& members, TextTask& task) {
  FillEmbed(members, task);
  auto types = members.Names("embedding_types").value_or(std::vector<std::string>{"float"});
  for (size_t i = 0; i < types.size(); ++i) {
    if (absl::c_linear_search(kVectorForms, types[i])) continue;
    members.Refuse(absl::StrCat("embedding_types[", i, "]"),
                   absl::StrCat("\"", absl::StrJoin(kVectorForms, "\" or \""), "\""),
                   DescribeText(types[i]));
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  if (types.empty()) types = {"float"};
  return [types, version, by_type](const std::shared_ptr<const DoneText>& done) {
    const auto append = [done, types, by_type](size_t at, std::string* to) {
      const size_t list = at / done->inputs(), index = at % done->inputs();
      const bool text = list == types.size();
      if (index == 0 && text) *to += "\"texts\":[";
      if (index == 0 && !text && by_type) absl::StrAppend(to, "\"", types[list], "\":[");
      if (text) {
        *to += text::QuoteJson(done->task.inputs[index].text);
      } else {
        AppendVector(VectorFormOf(types[list]), done->Row(index), to);
      }
      if (index + 1 < done->inputs()) return;
      *to += by_type && list + 1 == types.size() ? "]}" : "]";
    };
    const char* type = by_type ? "embeddings_by_type" : "embeddings_floats";
    return ListAnswer(EmbedHead(*done, version, type) + (by_type ? "{" : "["),
                      done->inputs() * (types.size() + 1), append, "}");
  };
}

}  // namespace

TextWriter ReadCohereEmbed(Members& members, TextTask& task) {
  return ReadEmbed("2", /*by_type=*/true, members, task);
}

TextWriter ReadFirstCohereEmbed(Members& members, TextTask& task) {
  return ReadEmbed("1", members.Has("embedding_types"), members, task);
}

// The answer has the members of Cohere's and Jina's APIs. Requests that may be Voyage's, which have
// no `top_n`, get the results a second time, in its `data`, where a document is a string.
// Infinity's client, recognized by `raw_scores`, refuses other results than Infinity's. Documents
// are cut where the model's longest sequence ends, whatever max_tokens_per_doc says.
TextWriter ReadRerank(Members& members, TextTask& task) {
  task.wish = TextWish::kScores;
  task.field = "documents";
  task.query = members.Text("query", /*object=*/true);
  task.inputs = members.Texts("documents", true);
  const bool infinity = members.Has("raw_scores");
  if (members.Flag("raw_scores", false)) task.scores = ScoreFunction::kPlain;
  const bool voyage = members.Has("top_k") || members.Has(kVoyageTruncation) ||
                      (!members.Has("top_n") && !infinity);
  task.truncation = members.Truncation(kVoyageTruncation);
  const auto top_n = members.Count("top_n"), top_k = members.Count("top_k");
  const int64_t most = top_n.value_or(top_k.value_or(std::numeric_limits<int64_t>::max()));
  members.Count("max_tokens_per_doc");
  const auto fields = members.Names("rank_fields");
  if (fields && *fields != std::vector<std::string>{"text"}) {
    members.Refuse("rank_fields", "[\"text\"] (join other fields of a document into its text)",
                   absl::StrCat("[", absl::StrJoin(*fields, ", "), "]"));
  }
  const bool with_documents = members.Flag("return_documents", false);
  return [most, with_documents, voyage, infinity](const std::shared_ptr<const DoneText>& done) {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"id\":", NewId(), ",\"object\":\"", infinity ? "rerank" : "list",
        "\",\"model\":", text::QuoteJson(done->result.model),
        ",\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens,
        "},\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":{\"search_units\":1},",
        "\"tokens\":{\"input_tokens\":", tokens, "}},\"results\":[");
    const auto order = BestFirst(done->result.numbers, static_cast<size_t>(most));
    const auto append = [done, order, with_documents, infinity](size_t at, std::string* to) {
      const size_t index = order[at % order.size()];
      if (at == order.size()) *to += "\"data\":[";
      absl::StrAppend(to, "{\"index\":", index, ",\"relevance_score\":");
      AppendNumber(done->result.numbers[index], to);
      if (with_documents) {
        const std::string text = text::QuoteJson(done->task.inputs[index].text);
        const bool plain = infinity || at >= order.size();
        absl::StrAppend(to, ",\"document\":", plain ? text : absl::StrCat("{\"text\":", text, "}"));
      }
      *to += (at + 1) % order.size() == 0 ? "}]" : "}";
    };
    return ListAnswer(head, order.size() * (voyage ? 2 : 1), append, "}");
  };
}

}  // namespace attendant::server
