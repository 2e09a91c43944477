// Tokenization: how a model's files say to turn text into token ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/model/model_description.h"

namespace attendant {

// The tokens that count in late interaction, by the task of a sequence (the library's
// MultiVectorMask). Ids are ascending.
struct TokenSelection {
  std::vector<int32_t> skipped_ids;     // left out if the task is one of these
  std::vector<std::string> skip_tasks;  // no task counts as "document"
  std::vector<int32_t> only_ids;  // not empty: others are left out, unless the task is "query"

  bool Skips(const std::string& task) const {
    return absl::c_linear_search(skip_tasks, task.empty() ? "document" : task);
  }
};

// Makes texts of the task "query" longer: tokens are added up to `length`, and their vectors count
// like the text's.
struct QueryExpansion {
  int64_t length = 0;
  std::string token;
  bool attended = false;  // false: no token attends to the added ones
};

// The function that makes scores of the outputs of a head that scores classes of sequences.
enum class ScoreFunction {
  kUnknown,  // there is no such head
  kSoftmax,
  kSigmoid,  // of each class by itself
  kPlain,    // the outputs are the scores
};

// The texts around those of a pair, in this order, which make one text of them. Truncation cuts the
// second text and keeps `after`.
struct PairTemplate {
  std::string before;
  std::string instruction;  // unless there is a prompt, which takes its place
  std::string after_instruction;
  std::string between;
  std::string after;

  bool operator==(const PairTemplate&) const = default;
};

// Tokens of one id that are added to shorter texts, and count as the others do.
struct TextPadding {
  int64_t length = 0;  // tokens of a text with them; 0: none are added
  int32_t id = 0;
  bool is_left = false;

  bool operator==(const TextPadding&) const = default;
};

struct Tokenization {
  // The contents of the files that say how, by the names that they have in most folders, as far as
  // they are there.
  std::map<std::string, std::string> files = {};
  std::string tokenizer_json;  // the file as transformers reads it; empty if there is none
  std::string why_no_tokenizer =
      "it was not loaded from a Hugging Face directory";  // if tokenizer_json is empty
  // Tokens of the longest sequence that the model is meant for, special tokens included; 0: the
  // folder says nothing. Embeddings may have positions for more.
  int64_t max_sequence_length = 0;
  std::map<std::string, int64_t> task_lengths = {};  // in its place for texts of these tasks
  bool truncates_left = false;  // texts that are longer lose their first tokens, not their last
  std::optional<QueryExpansion> query_expansion = {};
  bool lower_case = false;                     // texts are lower-cased before they are tokenized
  std::map<std::string, std::string> prompts;  // what to put before a text, by name
  std::string default_prompt;                  // a name in `prompts`; empty: none
  TextPadding padding = {};
  std::optional<PairTemplate> pair_template =
      {};                           // none: pairs are read as the tokenizer joins them
  std::vector<std::string> labels;  // of the classes, in order; empty: no classes
  // How the library's pipelines compute class scores, and how CrossEncoder of sentence-transformers
  // computes the scores that rank pairs.
  ScoreFunction class_scores = ScoreFunction::kUnknown;
  ScoreFunction rank_scores = ScoreFunction::kUnknown;
  std::map<std::string, int64_t> special_tokens;  // ids by role: "cls", "sep", "pad", …
  TokenSelection selection = {};
  // The token head makes vectors for late interaction, not class scores.
  bool is_multi_vector = false;
  // Scores of late interaction are divided by the number of the query's vectors.
  bool scores_take_mean = false;
  // The vector of a text is the mean of its tokens, whatever the model's own pooling is.
  bool texts_take_mean = false;
  // Texts get no special tokens, whatever the tokenizer's files say.
  bool leaves_out_special_tokens = false;
};

// Returns the tokens of the longest sequence that the model is meant for, in this task, and has
// positions for; 0: any.
inline int64_t MaxSequenceLength(const EmbeddingShape& embeddings, const Tokenization& tokenization,
                                 const std::string& task = "") {
  const auto of_task = tokenization.task_lengths.find(task);
  const int64_t meant = of_task == tokenization.task_lengths.end()
                            ? tokenization.max_sequence_length
                            : of_task->second;
  const int64_t longest = embeddings.longest_sequence();
  return meant == 0 || longest == 0 ? std::max(meant, longest) : std::min(meant, longest);
}

}  // namespace attendant
