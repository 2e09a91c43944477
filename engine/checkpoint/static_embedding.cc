// Static embeddings, which sentence_transformers.h declares.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/bounds.h"
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

// Where a file has the rows of the tokens.
struct Mapping {
  std::string path;
  int64_t max_bytes;  // of the file
  DataType data_type;
  int64_t offset;
};

int64_t IntegerAt(const char* bytes, DataType type) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes, sizeof(value));
    return static_cast<int64_t>(value);
  };
  return type == DataType::kInt64 ? as(int64_t{}) : as(int32_t{});
}

// Gives each token its row of a table that is shared by a mapping, scaled by the token's weight.
class FoldedWeights : public WeightSource {
 public:
  FoldedWeights(std::unique_ptr<WeightSource> weights, std::optional<Mapping> mapping, int64_t rows,
                int64_t width)
      : weights_(std::move(weights)), mapping_(std::move(mapping)), rows_(rows), width_(width) {}

  bool Has(absl::string_view name) const override { return weights_->Has(name); }

  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    if (name != kWords) return weights_->Read(name, target);
    const int64_t tokens = static_cast<int64_t>(target.size()) / width_;
    AlignedBuffer<float> table(rows_ * width_);
    RETURN_IF_ERROR(weights_->Read(kWords, {table.data(), static_cast<size_t>(table.size())}));
    std::vector<float> scales(tokens, 1.0f);
    if (weights_->Has(kTokenWeights)) {
      RETURN_IF_ERROR(weights_->Read(kTokenWeights, absl::MakeSpan(scales)));
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> row_of, ReadRows(tokens));
    for (int64_t token = 0; token < tokens; ++token) {
      const float* row = table.data() + row_of[token] * width_;
      float* to = target.data() + token * width_;
      for (int64_t c = 0; c < width_; ++c) to[c] = row[c] * scales[token];
    }
    return absl::OkStatus();
  }

 private:
  // Reads the row of each token.
  absl::StatusOr<std::vector<int64_t>> ReadRows(int64_t tokens) const {
    std::vector<int64_t> rows(tokens);
    for (int64_t i = 0; i < tokens; ++i) rows[i] = i;
    if (!mapping_) return rows;
    ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(mapping_->path, mapping_->max_bytes));
    const int64_t width = ByteWidth(mapping_->data_type);
    std::vector<char> bytes(tokens * width);
    RETURN_IF_ERROR(file.ReadAt(mapping_->offset, absl::MakeSpan(bytes)));
    for (int64_t i = 0; i < tokens; ++i) {
      rows[i] = IntegerAt(bytes.data() + i * width, mapping_->data_type);
      if (rows[i] >= 0 && rows[i] < rows_) continue;
      return InvalidArgument(mapping_->path, ": tensor 'mapping': expected 0..", rows_ - 1,
                             "; got ", rows[i], " for token ", i);
    }
    return rows;
  }

  const std::unique_ptr<WeightSource> weights_;
  const std::optional<Mapping> mapping_;
  const int64_t rows_, width_;
};

// The tensors of a table.
struct Table {
  std::string name;
  int64_t rows = 1, width = 1, tokens = 1;
  std::optional<Mapping> mapping = std::nullopt;
  bool has_weights = false;
};

// Finds a tensor among the files, with the file that has it.
std::pair<const SafetensorsFile*, const FileTensor*> Find(const WeightFiles& files,
                                                          const std::string& name) {
  for (const SafetensorsFile& file : files.files) {
    const auto found = file.tensors.find(name);
    if (found != file.tensors.end()) return {&file, &found->second};
  }
  return {nullptr, nullptr};
}

// Reads how many tokens there are, and where their rows are. Adds a problem if the tensors do not
// fit each other.
Table DescribeTable(const WeightFiles& files, int64_t max_bytes, Problems& problems) {
  Table table;
  for (const char* name : {"embedding.weight", "embeddings"}) {
    if (table.name.empty() && Find(files, name).second != nullptr) table.name = name;
  }
  if (table.name.empty()) {
    problems.Add("tensor 'embedding.weight' or 'embeddings': missing");
    return table;
  }
  const std::vector<int64_t>& shape = Find(files, table.name).second->shape;
  if (shape.size() != 2 || shape[0] < 1 || shape[0] > kVocabularyRange.highest || shape[1] < 1 ||
      shape[1] > kHiddenSizeRange.highest) {
    problems.Add("tensor ", Quoted(table.name), ": expected 1..", kVocabularyRange.highest,
                 " rows of 1..", kHiddenSizeRange.highest, " columns; got ", ShapeToString(shape));
    return table;
  }
  table.rows = table.tokens = shape[0];
  table.width = shape[1];
  if (table.name != "embeddings") return table;
  table.has_weights = Find(files, kWeights).second != nullptr;
  const auto [file, mapping] = Find(files, kMapping);
  if (mapping == nullptr) return table;
  const bool is_list = mapping->shape.size() == 1 && mapping->shape[0] >= table.rows &&
                       mapping->shape[0] <= kVocabularyRange.highest;
  const bool is_integer =
      mapping->data_type == DataType::kInt64 || mapping->data_type == DataType::kInt32;
  if (!is_list || !is_integer) {
    problems.Add("tensor 'mapping' ", mapping->dtype, " ", ShapeToString(mapping->shape),
                 ": expected I64 or I32 [tokens], for ", table.rows, " to ",
                 kVocabularyRange.highest, " tokens");
    return table;
  }
  table.tokens = mapping->shape[0];
  table.mapping = {file->file.path(), max_bytes, *mapping->data_type, mapping->offset};
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
  return ReadConfigIfPresent(absl::StrCat(folder, "/config.json"), [&](ConfigReader& config) {
    model.pooling = {.modes = {PoolingMode::kMean},
                     .normalize = config.Boolean({"normalize"}, false)};
  });
}

// The weights may also be in a JSON file with a name of its own, which the library fetches.
absl::Status CheckSparseConfig(const std::string& module) {
  return ReadConfigIfPresent(absl::StrCat(module, "/config.json"), [](ConfigReader& config) {
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
  ASSIGN_OR_RETURN(WeightFiles files, OpenWeightFiles(module, options));
  WeightBinder binder(folder);
  const Table table = DescribeTable(files, options.max_model_bytes, binder.problems());
  binder.AddFiles("", std::move(files));
  if (!binder.problems().empty()) return binder.Finish(options, checkpoint);
  ModelDescription& model = checkpoint.description = Describe(table);
  ASSIGN_OR_RETURN(checkpoint.tokenization,
                   ReadStaticTokenization(folder, module, checkpoint.warnings));
  RETURN_IF_ERROR(AddPooling(folder, modules, options, model, binder));
  binder.Bind({kWords, {table.rows, table.width}}, {{table.name}});
  if (table.has_weights) binder.Bind({kTokenWeights, {table.tokens}}, {{kWeights}});
  for (std::string& name : binder.Unbound()) {
    if (name != kMapping || !table.mapping) checkpoint.unused_tensors.push_back(std::move(name));
  }
  RETURN_IF_ERROR(binder.Finish(options, checkpoint));
  if (!table.mapping && !table.has_weights) return absl::OkStatus();
  // Rows times their weights are not rounded to the type of the file.
  checkpoint.description.embeddings->table_type = DataType::kFloat32;
  checkpoint.weights = std::make_unique<FoldedWeights>(std::move(checkpoint.weights), table.mapping,
                                                       table.rows, table.width);
  return absl::OkStatus();
}

absl::Status OpenSparseStaticEmbedding(const std::string& folder, const SentenceModules& modules,
                                       const CheckpointOptions& options, Checkpoint& checkpoint) {
  const std::string& module = modules.transformer;
  RETURN_IF_ERROR(CheckOptions(folder, options));
  RETURN_IF_ERROR(CheckSparseConfig(module));
  ASSIGN_OR_RETURN(WeightFiles files, OpenWeightFiles(module, options));
  WeightBinder binder(folder);
  Table table = {.name = "weight"};
  const FileTensor* weight = Find(files, table.name).second;
  if (weight != nullptr && weight->shape.size() == 1 && weight->shape[0] > 0 &&
      weight->shape[0] <= kVocabularyRange.highest) {
    table.rows = table.tokens = weight->shape[0];
  }
  binder.AddFiles("", std::move(files));
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
