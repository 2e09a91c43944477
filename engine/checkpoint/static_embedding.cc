// Static embeddings, which sentence_transformers.h declares.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/computed_weights.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/read_tokenization.h"
#include "engine/checkpoint/sentence_transformers.h"

namespace attendant {
namespace {

constexpr char kWords[] = "embeddings.word";
constexpr char kTokenWeights[] = "token_weights";
constexpr char kMapping[] = "mapping", kWeights[] = "weights";

int64_t IntegerAt(const char* bytes, DataType type) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes, sizeof(value));
    return static_cast<int64_t>(value);
  };
  return type == DataType::kInt64 ? as(int64_t{}) : as(int32_t{});
}

// The tensors of a table.
struct Table {
  std::string name;
  int64_t rows = 1, width = 1, tokens = 1;
  std::vector<int32_t> row_of = {};  // [tokens], by a mapping; empty: each token has its own row
  bool has_weights = false;
};

// Gives each token its row of the table, which tokens may share, scaled by the token's weight.
absl::Status Fold(const Table& table, WeightSource& source, absl::Span<float> target) {
  AlignedBuffer<float> rows(table.rows * table.width);
  RETURN_IF_ERROR(source.Read(kWords, {rows.data(), static_cast<size_t>(rows.size())}));
  std::vector<float> scales(table.tokens, 1.0f);
  if (table.has_weights) {
    RETURN_IF_ERROR(source.Read(kTokenWeights, absl::MakeSpan(scales)));
  }
  for (int64_t token = 0; token < table.tokens; ++token) {
    const float* row =
        rows.data() + (table.row_of.empty() ? token : table.row_of[token]) * table.width;
    float* to = target.data() + token * table.width;
    for (int64_t c = 0; c < table.width; ++c) to[c] = row[c] * scales[token];
  }
  return absl::OkStatus();
}

// Reads the row of each token. If the file cannot be read or names another row, adds a problem and
// returns an empty list.
std::vector<int32_t> ReadMapping(const FileTensor& mapping, int64_t rows, WeightBinder& binder) {
  std::vector<char> bytes(mapping.bytes);
  const absl::Status read = binder.ReadBytes(kMapping, absl::MakeSpan(bytes));
  binder.problems().AddError(read);
  if (!read.ok()) return {};
  std::vector<int32_t> row_of(mapping.shape[0]);
  const int64_t width = ByteWidth(*mapping.data_type);
  for (int64_t i = 0; i < mapping.shape[0]; ++i) {
    const int64_t row = IntegerAt(bytes.data() + i * width, *mapping.data_type);
    if (row < 0 || row >= rows) {
      binder.RefuseTensor(kMapping, "0..", rows - 1, "; got ", row, " for token ", i);
      return {};
    }
    row_of[i] = static_cast<int32_t>(row);
  }
  return row_of;
}

// Reads how many tokens there are, and their rows. Adds a problem if the tensors do not fit each
// other.
Table DescribeTable(WeightBinder& binder) {
  Table table;
  for (const char* name : {"embedding.weight", "embeddings"}) {
    if (table.name.empty() && binder.Find(name) != nullptr) table.name = name;
  }
  if (table.name.empty()) {
    binder.Refuse("tensor 'embedding.weight' or 'embeddings': missing");
    return table;
  }
  const FileTensor* matrix = binder.FindMatrix(table.name);
  if (matrix == nullptr || matrix->shape[0] > kVocabularyRange.highest ||
      matrix->shape[1] > kHiddenSizeRange.highest) {
    binder.RefuseTensor(table.name, "1..", kVocabularyRange.highest, " rows of 1..",
                        kHiddenSizeRange.highest, " columns");
    return table;
  }
  table.rows = table.tokens = matrix->shape[0];
  table.width = matrix->shape[1];
  if (table.name != "embeddings") return table;
  table.has_weights = binder.Find(kWeights) != nullptr;
  const FileTensor* mapping = binder.Find(kMapping);
  if (mapping == nullptr) return table;
  const bool is_list = mapping->shape.size() == 1 && mapping->shape[0] >= table.rows &&
                       mapping->shape[0] <= kVocabularyRange.highest;
  const bool is_integer =
      mapping->data_type == DataType::kInt64 || mapping->data_type == DataType::kInt32;
  if (!is_list || !is_integer) {
    binder.RefuseTensor(kMapping, "I64 or I32 [tokens], for ", table.rows, " to ",
                        kVocabularyRange.highest, " tokens");
    return table;
  }
  table.tokens = mapping->shape[0];
  table.row_of = ReadMapping(*mapping, table.rows, binder);
  return table;
}

ModelDescription Describe(const Table& table) {
  ModelDescription model;
  model.family = "static_embedding";
  model.layer.hidden_size = table.width;
  model.layer.norms.placement = NormPlacement::kNone;
  model.layer.attention.heads = 1;
  model.layer.attention.key_width = model.layer.attention.value_width = table.width;
  model.layer.attention.has_input_projection = model.layer.attention.has_output_projection = false;
  model.layer.attention.keys_are_queries = model.layer.attention.values_are_keys = true;
  model.embeddings =
      EmbeddingShape{.width = table.width, .vocabulary = table.tokens, .has_norm = false};
  return model;
}

// The library takes tokenizer.json as it is, but without special tokens around texts, and cuts
// texts where the file says.
absl::StatusOr<Tokenization> ReadStaticTokenization(const std::string& folder,
                                                    const std::string& module,
                                                    std::vector<std::string>& warnings) {
  ASSIGN_OR_RETURN(Tokenization read, ReadTokenization(folder, module, warnings));
  std::erase_if(read.files, [](const auto& file) { return file.first != "tokenizer.json"; });
  read.special_tokens.clear();
  read.max_sequence_length = 0;
  if (read.tokenizer_json.empty()) return read;
  std::string& file = read.files["tokenizer.json"];
  const TextTruncation truncation = ReadTruncation(file);
  read.max_sequence_length = truncation.length;
  read.truncates_left = truncation.is_left;
  SetMember("post_processor", "null", file);
  read.tokenizer_json = file;
  return read;
}

// Refuses options about what such a model does not have.
absl::Status CheckOptions(const std::string& folder, const CheckpointOptions& options) {
  if (options.pooling != PoolingChoice::kAsFiles) {
    return InvalidArgument(
        folder, ": pooling: not supported: static embeddings are the mean of their tokens");
  }
  if (options.task.empty() && options.tower == Tower::kOnly) return absl::OkStatus();
  return InvalidArgument(folder, ": ", options.task.empty() ? "tower" : "task",
                         ": not supported by static embeddings");
}

absl::Status AddPooling(const std::string& folder, const std::optional<SentenceModules>& modules,
                        const CheckpointOptions& options, ModelDescription& model,
                        WeightBinder& binder) {
  RETURN_IF_ERROR(CheckOptions(folder, options));
  if (modules) return ReadSentenceHeads(*modules, options, model, binder);
  return ReadConfigOrDefaults(absl::StrCat(folder, "/config.json"), [&](ConfigReader& config) {
    model.pooling = {.modes = {PoolingMode::kMean},
                     .normalize = config.Boolean({"normalize"}, false)};
  });
}

// The weights may also be in a JSON file with a name of its own, which the library fetches.
absl::Status CheckSparseConfig(const std::string& module) {
  return ReadConfigOrDefaults(absl::StrCat(module, "/config.json"), [](ConfigReader& config) {
    if (!config.Has({"path"})) return;
    config.Refuse("path: not supported: expected the weights in model.safetensors; got ",
                  Quoted(config.Text({"path"})),
                  "; load and save the model with sentence-transformers");
  });
}

}  // namespace

bool IsModel2Vec(const std::string& folder) {
  return TextAt(ReadObjectOrEmpty(absl::StrCat(folder, "/config.json")), "model_type") ==
         "model2vec";
}

absl::Status OpenStaticEmbedding(const std::string& folder,
                                 const std::optional<SentenceModules>& modules,
                                 const CheckpointOptions& options, Checkpoint& checkpoint) {
  const std::string module = modules ? modules->transformer : folder;
  WeightBinder binder(folder);
  RETURN_IF_ERROR(binder.AddFiles("", OpenWeightFiles(module, options)));
  Table table = DescribeTable(binder);
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  ModelDescription& model = checkpoint.description = Describe(table);
  ASSIGN_OR_RETURN(checkpoint.tokenization,
                   ReadStaticTokenization(folder, module, checkpoint.warnings));
  RETURN_IF_ERROR(AddPooling(folder, modules, options, model, binder));
  binder.Bind({kWords, {table.rows, table.width}}, {{table.name}});
  if (table.has_weights) binder.Bind({kTokenWeights, {table.tokens}}, {{kWeights}});
  for (std::string& name : binder.Unbound()) {
    if (name == kMapping && !table.row_of.empty()) continue;
    checkpoint.unused_tensors.push_back(std::move(name));
  }
  RETURN_IF_ERROR(binder.Finish(options, checkpoint));
  if (table.row_of.empty() && !table.has_weights) return absl::OkStatus();
  // Rows times their weights are not rounded to the type of the file.
  checkpoint.description.embeddings->table_type = DataType::kFloat32;
  ComputedWeights folded;
  const int64_t elements = table.tokens * table.width;
  auto fold = [table = std::move(table)](WeightSource& source, absl::Span<float> target) {
    return Fold(table, source, target);
  };
  folded[kWords] = {elements, std::move(fold)};
  checkpoint.weights = WithComputed(std::move(folded), std::move(checkpoint.weights));
  return absl::OkStatus();
}

absl::Status OpenSparseStaticEmbedding(const std::string& folder, const SentenceModules& modules,
                                       const CheckpointOptions& options, Checkpoint& checkpoint) {
  const std::string& module = modules.transformer;
  RETURN_IF_ERROR(CheckOptions(folder, options));
  RETURN_IF_ERROR(CheckSparseConfig(module));
  WeightBinder binder(folder);
  RETURN_IF_ERROR(binder.AddFiles("", OpenWeightFiles(module, options)));
  Table table = {.name = "weight"};
  const FileTensor* weight = binder.Find(table.name);
  if (weight != nullptr && weight->shape.size() == 1 && weight->shape[0] > 0 &&
      weight->shape[0] <= kVocabularyRange.highest) {
    table.rows = table.tokens = weight->shape[0];
  }
  // One number for each word, which is all that the lexical head needs.
  ModelDescription& model = checkpoint.description = Describe(table);
  model.family = "sparse_static_embedding";
  model.lexical_head = {.modes = {}};
  ASSIGN_OR_RETURN(checkpoint.tokenization, ReadTokenization(folder, module, checkpoint.warnings));
  // The library asks transformers' tokenizer for no special tokens.
  checkpoint.tokenization.leaves_out_special_tokens = true;
  std::string& tokenizer = checkpoint.tokenization.tokenizer_json;
  if (!tokenizer.empty()) SetMember("post_processor", "null", tokenizer);
  binder.Bind({kWords, {table.tokens}}, {{table.name}});
  checkpoint.unused_tensors = binder.Unbound();
  return binder.Finish(options, checkpoint);
}

}  // namespace attendant
