// The files that sentence-transformers adds to a checkpoint: modules.json, and a folder for each
// module.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/derived_weights.h"
#include "engine/checkpoint/families/model_config.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/late_interaction/multi_vector_mask.h"

namespace attendant {

// The modules that modules.json lists: a Transformer, or a StaticEmbedding, which pools too; then
// optionally modules that make a vector of a sequence (Pooling, Dense, Normalize) and modules that
// make one of each token (Dense, Normalize, MultiVectorMask), or only SpladePooling or LogitScore;
// or only a SparseStaticEmbedding. The paths are the directories of the modules, and empty for
// missing ones. PyLate's ColBERT models list only Transformer and Dense; they are read as if
// MultiVectorMask and Normalize followed. Stanford's list nothing.
struct SentenceModules {
  std::string transformer;  // or the static embedding
  bool is_static = false;   // it is a StaticEmbedding
  bool is_sparse_static = false;
  // It pools sequences with its model's pooler, as a tower does; only Normalize may follow.
  bool transformer_pools = false;
  std::string own_code;  // the type of a Transformer that the folder's authors wrote; or empty
  std::string pooling;
  std::vector<std::string> dense;  // in their order
  bool normalize = false;

  // Whether there is a vector of a sequence.
  bool pools() const { return is_static || transformer_pools || !pooling.empty(); }

  // Whether Dense or Normalize apply to token vectors (late interaction, such as ColBERT).
  bool has_token_head = false;
  std::vector<std::string> token_dense;  // in their order
  bool normalizes_tokens = false;
  std::string mask;  // the file of a MultiVectorMask; empty: the vectors of all tokens count
  MaskFile mask_kind = MaskFile::kModule;
  bool is_stanford = false;  // its Dense is a tensor of the transformer's files
  std::string splade_pooling;
  std::string logit_score;
};

// Returns whether a config_sentence_transformers.json belongs to a PyLate ColBERT model. Files
// written before version 5 of sentence-transformers have no model_type.
bool IsPylate(ConfigReader& sentence_config);

// Adds a problem for each setting of a Transformer (sentence_bert_config.json) by which the library
// would make other tokens, load another model, or take other outputs of it.
void CheckTransformerSettings(ConfigReader& config);

// Does so for each setting of config_sentence_transformers.json by which the library cuts vectors.
void CheckModelSettings(ConfigReader& config);

// Returns nothing if the folder has no modules.json. In place of a Router, takes the modules of its
// `route`, or of its default if `route` is empty. INVALID_ARGUMENT: unknown module types, an
// unsupported order, or an unknown route.
absl::StatusOr<std::optional<SentenceModules>> ReadSentenceModules(const std::string& folder,
                                                                   const std::string& route = "");

// Describes the pooling of hidden states with the model's hidden size, and the token head. The
// model has its own pooling already if the Transformer pools. The weight files of Dense modules are
// added to `binder` under names that begin with kDensePrefix.
absl::Status ReadSentenceHeads(const SentenceModules& modules, const CheckpointOptions& options,
                               ModelDescription& model, WeightBinder& binder);

// Returns the modules of a checkpoint of Stanford's ColBERT.
SentenceModules ModulesOfStanford(const std::string& folder);

// Adds the head that makes sparse vectors, by the SpladePooling module or, without modules, as that
// module does by default.
absl::Status AddVocabularyHead(const ModelConfig& config,
                               const std::optional<SentenceModules>& modules,
                               const FamilyTensors& tensors, ModelDescription& model);

// Returns whether a folder has the config.json of a model2vec model.
bool IsModel2Vec(const std::string& folder);

// Opens a model that begins with StaticEmbedding or, without modules, a model2vec folder: a token
// table, optionally shared through a mapping and scaled by weights. Texts get no special tokens.
// Returns the same errors as OpenCheckpoint.
absl::Status OpenStaticEmbedding(const std::string& folder,
                                 const std::optional<SentenceModules>& modules,
                                 const CheckpointOptions& options, Checkpoint& checkpoint);

// Opens a model with SparseStaticEmbedding as its only module: one weight per token, which the
// sparse vector of a text contains for its tokens. Returns the same errors as OpenCheckpoint.
absl::Status OpenSparseStaticEmbedding(const std::string& folder, const SentenceModules& modules,
                                       const CheckpointOptions& options, Checkpoint& checkpoint);

inline constexpr char kDensePrefix[] = "Dense/";

}  // namespace attendant
