// The routes of text-embeddings-inference that score texts and show their tokens.
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

constexpr std::initializer_list<absl::string_view> kFunctions = {"none", "softmax", "sigmoid"};

void AppendToken(const std::string& text, const v1::TextTokens& tokens, int i, std::string* to) {
  const bool placed = tokens.byte_begins(i) < tokens.byte_ends(i);  // else added, or of a prompt
  const std::string shown = placed ? WordOf(text, tokens, i, i) : tokens.tokens(i);
  absl::StrAppend(to, "{\"id\":", tokens.ids(i), ",\"text\":", text::QuoteJson(shown),
                  ",\"special\":", tokens.sources(i) == 2 ? "true" : "false");
  if (placed) {
    absl::StrAppend(to, ",\"start\":", tokens.begins(i), ",\"stop\":", tokens.ends(i), "}");
  } else {
    *to += ",\"start\":null,\"stop\":null}";
  }
}

}  // namespace

// [{"score", "label"}], best first, or a list of these for a batch.
TextWriter ReadTeiPredict(Members& members, TextTask& task) {
  bool batch = false;
  task.wish = TextWish::kScores;
  task.field = "inputs";
  task.inputs = members.Pairs("inputs", &batch);
  if (batch && task.inputs.size() == 1) task.field = "inputs[0]";
  task.truncation = members.Truncation();
  members.RefuseGiven(
      "candidate_labels",
      "not supported; send pairs of a text and a hypothesis, [[text, hypothesis], …]");
  const std::string function = members.Has("function_to_apply")
                                   ? members.Choice("function_to_apply", kFunctions)
                                   : std::string();
  if (function == "softmax") task.scores = ScoreFunction::kSoftmax;
  if (function == "sigmoid") task.scores = ScoreFunction::kSigmoid;
  if (members.Flag("raw_scores", function == "none")) task.scores = ScoreFunction::kPlain;
  const int64_t top_k = members.Count("top_k").value_or(std::numeric_limits<int64_t>::max());
  // Clients of Hugging Face's Inference API send `parameters`, and expect a list for each text.
  const bool lists = batch || members.Has("parameters");
  return [lists, top_k](const std::shared_ptr<const DoneText>& done) {
    const auto append = [done, top_k](size_t index, std::string* to) {
      const auto scores = done->Row(index);
      *to += '[';
      for (const size_t place : BestFirst(scores, static_cast<size_t>(top_k))) {
        *to += to->back() == '[' ? "{\"score\":" : ",{\"score\":";
        AppendNumber(scores[place], to);
        absl::StrAppend(to, ",\"label\":", text::QuoteJson(done->result.labels[place]), "}");
      }
      *to += ']';
    };
    return ListAnswer(lists ? "[" : "", done->inputs(), append, lists ? "]" : "");
  };
}

// [{"index", "score"}], best first, with "text" if it is asked for. Clients of Infinity and vLLM
// send `documents` to this path, and expect what Jina's API returns.
TextWriter ReadTeiRerank(Members& members, TextTask& task) {
  if (members.Has("documents") && !members.Has("texts")) return ReadRerank(members, task);
  task.wish = TextWish::kScores;
  task.field = "texts";
  task.query = members.Text("query");
  task.inputs = members.Texts("texts");
  task.truncation = members.Truncation();
  if (members.Flag("raw_scores", false)) task.scores = ScoreFunction::kPlain;
  const bool with_text = members.Flag("return_text", false);
  return [with_text](const std::shared_ptr<const DoneText>& done) {
    const auto order = BestFirst(done->result.numbers, done->inputs());
    const auto append = [done, order, with_text](size_t place, std::string* to) {
      const size_t index = order[place];
      absl::StrAppend(to, "{\"index\":", index, ",\"score\":");
      AppendNumber(done->result.numbers[index], to);
      if (with_text) {
        absl::StrAppend(to, ",\"text\":", text::QuoteJson(done->task.inputs[index].text));
      }
      *to += '}';
    };
    return ListAnswer("[", order.size(), append, "]");
  };
}

// [[{"id", "text", "special", "start", "stop"}]]: the tokens of each text, none of which are cut
// off, with their places in code points.
TextWriter ReadTeiTokenize(Members& members, TextTask& task) {
  task.wish = TextWish::kTokens;
  task.field = "inputs";
  task.inputs = members.TextOrTexts("inputs", nullptr);
  task.truncation = v1::NO_TRUNCATION;
  task.prompt_name = members.Name("prompt_name");
  task.add_special_tokens = members.Flag("add_special_tokens", true);
  return [](const std::shared_ptr<const DoneText>& done) {
    const auto append = [done](size_t index, std::string* to) {
      *to += '[';
      for (int i = 0; i < done->result.texts[index].ids_size(); ++i) {
        if (i > 0) *to += ',';
        AppendToken(done->task.inputs[index].text, done->result.texts[index], i, to);
      }
      *to += ']';
    };
    return ListAnswer("[", done->inputs(), append, "]");
  };
}

}  // namespace attendant::server
