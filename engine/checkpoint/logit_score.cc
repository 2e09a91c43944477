#include "engine/checkpoint/logit_score.h"

#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"
#include "engine/checkpoint/read_tokenization.h"

namespace attendant {
namespace {

constexpr char kLogits[] = "causal_logits";  // the module's input
constexpr char kJudge[] = "Judge whether the Document meets the requirements";
constexpr char kBeforeInstruction[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: ";
constexpr char kInstruction[] =
    "Given a web search query, retrieve relevant passages that answer the query";
constexpr char kAfterDocument[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

struct RowsOfScore {
  int64_t yes = 0;
  std::optional<int64_t> no;
};

absl::StatusOr<RowsOfScore> ReadRows(const std::string& path, int64_t vocabulary) {
  const IntegerRange ids = {0, vocabulary - 1};
  RowsOfScore rows;
  RETURN_IF_ERROR(ReadConfig(path, [&](ConfigReader& config) {
    rows.yes = config.Integer({"true_token_id"}, ids);
    if (config.Has({"false_token_id"})) rows.no = config.Integer({"false_token_id"}, ids);
    const std::string input = config.Text({"module_input_name"}, kLogits);
    if (input == kLogits) return;
    config.Refuse("module_input_name: expected '", kLogits, "'; got ", Quoted(input));
  }));
  return rows;
}

absl::StatusOr<RowsOfScore> FindRows(const std::string& folder, const Tokenization& tokenization,
                                     int64_t vocabulary) {
  const std::map<std::string, int32_t> ids =
      ReadTokenIds(tokenization.tokenizer_json, {"yes", "no"});
  for (const char* token : {"yes", "no"}) {
    const auto found = ids.find(token);
    if (found == ids.end()) {
      return InvalidArgument(
          folder, ": pooling=yes_no: requires the tokens 'yes' and 'no' in tokenizer.json; '",
          token, "' is missing");
    }
    if (found->second >= vocabulary) {
      return InvalidArgument(folder, ": pooling=yes_no: expected the token '", token,
                             "' of tokenizer.json to have an id in 0..", vocabulary - 1, "; got ",
                             found->second);
    }
  }
  return RowsOfScore{ids.at("yes"), ids.at("no")};
}

// Whether the library renders texts by a chat template. Older folders, which do not say, never do.
bool TakesMessages(const Tokenization& tokenization) {
  const auto file = tokenization.files.find("sentence_bert_config.json");
  if (file == tokenization.files.end()) return false;
  const absl::StatusOr<Json> config = ParseJson(file->second, JsonLimits(), file->first);
  return config.ok() && config->is_object() &&
         config->value("modality_config", Json()).contains("message");
}

void SetTemplate(const std::string& folder, bool is_default, Checkpoint& checkpoint) {
  Tokenization& tokenization = checkpoint.tokenization;
  if (!is_default && !TakesMessages(tokenization)) return;
  if (!is_default && !absl::StrContains(ReadChatTemplate(folder), kJudge)) {
    checkpoint.warnings.push_back(absl::StrCat(
        folder, ": chat_template: not evaluated: pairs of texts are read as the tokenizer joins ",
        "them; send each pair as one text, with the template's text around it"));
    return;
  }
  tokenization.pair_template = {kBeforeInstruction, kInstruction,
                                "\n<Query>: ", "\n<Document>: ", kAfterDocument};
}

}  // namespace

absl::Status AddLogitScore(const std::string& folder, const std::string& config,
                           absl::Span<const TensorPart> words, Checkpoint& checkpoint,
                           WeightBinder& binder) {
  ModelDescription& model = checkpoint.description;
  if (!model.embeddings || model.classifier) {
    return InvalidArgument(
        folder, ": expected a language model with the logits of two tokens; got ",
        model.classifier ? "a classification head" : "a model without embeddings");
  }
  const int64_t vocabulary = model.embeddings->vocabulary;
  ASSIGN_OR_RETURN(const RowsOfScore rows,
                   config.empty() ? FindRows(folder, checkpoint.tokenization, vocabulary)
                                  : ReadRows(config, vocabulary));
  std::vector<TensorPart> tables = {{"lm_head.weight"}};
  tables.insert(tables.end(), words.begin(), words.end());
  for (TensorPart& table : tables) table.rows = {rows.yes, vocabulary};
  const WeightSpec weight = {"classifier.dense.weight", {1, model.layer.hidden_size}};
  binder.BindDifference(weight, tables, rows.no);
  model.classifier = {.modes = {PoolingMode::kLastToken}, .dense_width = 1};
  SetTemplate(folder, config.empty(), checkpoint);
  return absl::OkStatus();
}

}  // namespace attendant
