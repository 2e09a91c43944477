// /entities, in the form of transformers' TokenClassificationPipeline.
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

struct Entity {
  std::string label;
  float score;
  uint32_t first_token, last_token;
};

constexpr uint32_t kNoText = 2;  // TextTokens.sources of a token that the tokenizer added

// The label without the "B-" or "I-" of the convention that marks beginnings.
absl::string_view TagOf(absl::string_view label) {
  const bool marked = absl::StartsWith(label, "B-") || absl::StartsWith(label, "I-");
  return marked ? label.substr(2) : label;
}

// The pipeline shows less than it compares: "X-Y" is shown as "Y".
std::string NameOf(const std::string& label) {
  const size_t dash = label.find('-');
  return dash == std::string::npos ? label : label.substr(dash + 1);
}

Entity Join(absl::Span<const Entity> tokens) {
  float sum = 0;
  for (const Entity& token : tokens) sum += token.score;
  return {NameOf(tokens.front().label), sum / static_cast<float>(tokens.size()),
          tokens.front().first_token, tokens.back().last_token};
}

// Returns the likeliest label of each token of the text, except ignored labels. `probabilities`:
// [tokens, labels].
std::vector<Entity> TokenEntities(const v1::TextTokens& tokens,
                                  absl::Span<const float> probabilities,
                                  const std::vector<std::string>& labels,
                                  const std::set<std::string>& ignored) {
  std::vector<Entity> found;
  for (uint32_t i = 0; i < static_cast<uint32_t>(tokens.ids_size()); ++i) {
    if (tokens.sources(static_cast<int>(i)) == kNoText) continue;
    const auto row = probabilities.subspan(i * labels.size(), labels.size());
    const auto best = static_cast<size_t>(absl::c_max_element(row) - row.begin());
    if (ignored.count(labels[best]) > 0) continue;
    found.push_back({labels[best], row[best], i, i});
  }
  return found;
}

// The same with neighbours joined, like transformers' TokenClassificationPipeline with
// aggregation_strategy "simple": a token belongs to the previous entity if its label has the same
// name and does not begin with "B-". Names are labels without the part up to the first "-"; scores
// are means. Entities with ignored names are removed afterwards.
std::vector<Entity> JoinedEntities(const v1::TextTokens& tokens,
                                   absl::Span<const float> probabilities,
                                   const std::vector<std::string>& labels,
                                   const std::set<std::string>& ignored) {
  // Ignored ones too, because they separate others.
  const std::vector<Entity> all = TokenEntities(tokens, probabilities, labels, {});
  std::vector<Entity> joined;
  size_t first = 0;
  for (size_t i = 1; i <= all.size(); ++i) {
    const bool goes_on = i < all.size() && TagOf(all[i].label) == TagOf(all[i - 1].label) &&
                         !absl::StartsWith(all[i].label, "B-");
    if (goes_on) continue;
    Entity entity = Join(absl::MakeConstSpan(all).subspan(first, i - first));
    if (ignored.count(entity.label) == 0) joined.push_back(std::move(entity));
    first = i;
  }
  return joined;
}

void Append(const std::string& text, const v1::TextTokens& tokens, const Entity& entity,
            bool joined, std::optional<uint32_t> unknown_id, std::string* to) {
  const int first = static_cast<int>(entity.first_token);
  const int last = static_cast<int>(entity.last_token);
  absl::StrAppend(to, joined ? "{\"entity_group\":" : "{\"entity\":", text::QuoteJson(entity.label),
                  ",\"score\":");
  AppendNumber(entity.score, to);
  if (!joined) absl::StrAppend(to, ",\"index\":", first);
  // As in the pipeline, a token that stands for unknown words is not a word.
  const bool is_text = joined || tokens.ids(first) == unknown_id;
  const std::string word = is_text ? WordOf(text, tokens, first, last) : tokens.tokens(first);
  absl::StrAppend(to, ",\"word\":", text::QuoteJson(word), ",\"start\":", tokens.begins(first),
                  ",\"end\":", tokens.ends(last), "}");
}

}  // namespace

// [{"entity_group", "score", "word", "start", "end"}], or with `aggregation_strategy` "none"
// [{"entity", "score", "index", "word", "start", "end"}]; a list of these for a batch.
TextWriter ReadEntities(Members& members, TextTask& task) {
  bool batch = false;
  task.wish = TextWish::kEntities;
  task.field = "inputs";
  task.inputs = members.TextOrTexts("inputs", &batch);
  task.truncation = members.Truncation();
  // The pipeline would read all of a long text, in parts that overlap.
  if (members.Has("stride") && !members.Has("truncate")) task.truncation = v1::NO_TRUNCATION;
  const bool joins = members.Choice("aggregation_strategy", {"simple", "none"}) == "simple";
  const auto names = members.Names("ignore_labels").value_or(std::vector<std::string>{"O"});
  const std::set<std::string> ignored(names.begin(), names.end());
  return [batch, joins, ignored](const std::shared_ptr<const DoneText>& done) {
    std::vector<size_t> first_rows;
    size_t rows = 0;
    for (const v1::TextTokens& tokens : done->result.texts) {
      first_rows.push_back(rows);
      rows += static_cast<size_t>(tokens.ids_size());
    }
    const auto append = [done, first_rows = std::move(first_rows), joins, ignored](
                            size_t index, std::string* to) {
      const TextResult& result = done->result;
      const v1::TextTokens& tokens = result.texts[index];
      const size_t width = result.labels.size();
      const auto numbers =
          absl::MakeConstSpan(result.numbers)
              .subspan(first_rows[index] * width, static_cast<size_t>(tokens.ids_size()) * width);
      *to += '[';
      const auto find = joins ? JoinedEntities : TokenEntities;
      for (const Entity& entity : find(tokens, numbers, result.labels, ignored)) {
        if (to->back() != '[') *to += ',';
        Append(done->task.inputs[index].text, tokens, entity, joins, result.unknown_id, to);
      }
      *to += ']';
    };
    return ListAnswer(batch ? "[" : "", done->inputs(), append, batch ? "]" : "");
  };
}

}  // namespace attendant::server
