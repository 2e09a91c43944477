#include "engine/checkpoint/logit_score.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"

namespace attendant {
namespace {

constexpr char kLogits[] = "causal_logits";  // what the module reads
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
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  const IntegerRange ids = {0, vocabulary - 1};
  RowsOfScore rows;
  rows.yes = config.Integer({"true_token_id"}, ids);
  if (config.Has({"false_token_id"})) rows.no = config.Integer({"false_token_id"}, ids);
  if (const std::string input = config.Text({"module_input_name"}, kLogits); input != kLogits) {
    problems.Add(
        absl::StrCat("module_input_name: expected '", kLogits, "', found ", Quoted(input)));
  }
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  return rows;
}

absl::StatusOr<RowsOfScore> FindRows(const std::string& folder, const Tokenization& tokenization) {
  const std::map<std::string, int32_t> ids =
      ReadTokenIds(tokenization.tokenizer_json, {"yes", "no"});
  const auto yes = ids.find("yes"), no = ids.find("no");
  if (yes != ids.end() && no != ids.end()) return RowsOfScore{yes->second, no->second};
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": pooling=yes_no: expected a tokenizer.json with the tokens 'yes' and ",
                   "'no', found ", yes == ids.end() ? "no 'yes'" : "no 'no'"));
}

// Returns the folder's chat template; empty: it has none.
std::string ReadChatTemplate(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/chat_template.jinja");
  if (PathExists(path)) {
    const absl::StatusOr<std::string> text = ReadSmallFile(path, JsonLimits().max_bytes);
    if (text.ok()) return *text;
  }
  const absl::StatusOr<Json> json =
      ReadJsonFile(absl::StrCat(folder, "/tokenizer_config.json"), JsonLimits());
  if (!json.ok() || !json->is_object()) return "";
  const Json found = json->value("chat_template", Json());
  return found.is_string() ? found.get<std::string>() : "";
}

void SetTemplate(const std::string& folder, bool is_default, Checkpoint& checkpoint) {
  Tokenization& tokenization = checkpoint.tokenization;
  const std::string chat = ReadChatTemplate(folder);
  if (!is_default && !chat.empty() && !absl::StrContains(chat, kJudge)) {
    checkpoint.warnings.push_back(absl::StrCat(
        folder, ": chat_template: not evaluated: pairs of texts are read as the tokenizer joins ",
        "them; send each pair as one text, with the template's text around it"));
    return;
  }
  const auto prompt = tokenization.prompts.find(tokenization.default_prompt);
  const std::string& instruction =
      prompt == tokenization.prompts.end() ? kInstruction : prompt->second;
  tokenization.pair_template = {absl::StrCat(kBeforeInstruction, instruction, "\n<Query>: "),
                                "\n<Document>: ", kAfterDocument};
}

}  // namespace

absl::Status AddLogitScore(const std::string& folder, const std::string& config,
                           absl::Span<const TensorPart> words, Checkpoint& checkpoint,
                           WeightBinder& binder) {
  ModelDescription& model = checkpoint.description;
  if (!model.embeddings || model.classifier) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": expected a language model for the logits of two words, found ",
        model.classifier ? "a head that scores classes" : "a model without embeddings"));
  }
  const int64_t vocabulary = model.embeddings->vocabulary;
  const absl::StatusOr<RowsOfScore> rows =
      config.empty() ? FindRows(folder, checkpoint.tokenization) : ReadRows(config, vocabulary);
  if (!rows.ok()) return rows.status();
  std::vector<TensorPart> tables = {{"lm_head.weight"}};
  tables.insert(tables.end(), words.begin(), words.end());
  for (TensorPart& table : tables) table.rows = {rows->yes, vocabulary};
  const WeightSpec weight = {"classifier.dense.weight", {1, model.layer.hidden_size}};
  binder.BindDifference(weight, tables, rows->no);
  model.classifier = {.modes = {PoolingMode::kLastToken}, .dense_width = 1};
  SetTemplate(folder, config.empty(), checkpoint);
  return absl::OkStatus();
}

}  // namespace attendant
