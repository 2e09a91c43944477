// Inspector, which analyses a model on the sequences of one request: it turns answers of Encode
// into statistics and maps of every head.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/inspect/statistics.h"
#include "client/messages.h"

namespace attendant::client {

// Returns the checkpoint's number of a head of an answer, which has no pruned heads.
int64_t HeadNumber(const ModelInfo& model, int64_t layer, int64_t head);

// The statistics of one head and its map.
struct HeadInspection {
  int64_t number = 0;  // in the checkpoint, as in head_gates; pruned heads are counted too
  HeadStatistics statistics;
  Matrix map;  // Coarsen(P, cells)
};

// One layer on one sequence.
struct LayerInspection {
  uint32_t layer = 0;
  double token_uniformity = 0;  // of the layer's output
  std::vector<HeadInspection> heads;
};

// One sequence. Only its kept tokens count.
struct SequenceInspection {
  std::vector<int64_t> positions;  // indices of the kept tokens in the padded row; before features,
                                   // those of the model's own rows
  std::vector<int64_t> token_ids;  // of the kept tokens; empty if the input was not token ids
  std::vector<std::string> token_texts;  // of the same tokens; empty without NameTokens
  // The least frequent ids of this sequence, counted over all sequences, in ascending order; empty
  // if there are no ids or all are equally frequent.
  std::vector<int64_t> rare_ids;
  std::optional<double> input_uniformity;  // of the hidden states in the request
  std::vector<LayerInspection> layers;
};

// The result: all sequences of a request.
struct Inspection {
  ModelInfo model;
  std::string compute_type;  // as in Execution; empty before the first answer
  int64_t cells = 0;         // the largest side of a map
  std::vector<SequenceInspection> sequences;
};

// Takes a request apart into its sequences, and its answers into layers. Not thread-safe.
class Inspector {
 public:
  // The request must be one that the server would answer. INVALID_ARGUMENT: its shapes are not
  // valid, or no token is kept.
  static absl::StatusOr<Inspector> Create(const EncodeRequest& request, const ModelInfo& model,
                                          int64_t cells);

  // Gives each token a text, for each sequence as many as it has tokens; padding at its end may
  // have none. Rows that the model adds have names of their own. INVALID_ARGUMENT: too few or too
  // many.
  absl::Status NameTokens(const std::vector<std::vector<std::string>>& texts);

  // Returns the number of layers whose probabilities and hidden states fit into an answer of this
  // size, at least 1.
  int64_t LayersThatFit(int64_t answer_bytes) const;

  // Adds the layers of an answer, which must have the float32 probabilities and hidden states of
  // each. INTERNAL: their shapes are not those that the request leads to.
  absl::Status Add(const EncodeResult& result);

  const Inspection& inspection() const { return inspection_; }

 private:
  // The places of the tokens of one sequence.
  struct Rows {
    std::vector<int64_t> positions;  // key columns: the model's own rows, then the kept tokens
    int64_t length = 0;              // in the request, with padding
    int64_t input_row = 0;           // index of its first token among the rows of the request
    int64_t first_row = 0;           // index of its first row among the rows of an answer
    std::vector<bool> rare;          // whether the id of each position is rare; or empty
  };

  Inspector() = default;
  absl::Status FindRows(const EncodeRequest& request, const Tensor& tokens, size_t packed_rank);
  absl::Status AddInput(const EncodeRequest& request);
  void FindRareIds();
  absl::Status AddHeads(const Tensor& probabilities, int64_t sequence,
                        LayerInspection& layer) const;

  Inspection inspection_;
  std::vector<Rows> rows_;
  int64_t own_rows_ = 0;    // the rows that the model puts before each sequence
  int64_t length_ = 0;      // S of the answers; like token_rows_, it includes the model's own rows
  int64_t token_rows_ = 0;  // B S, or T if packed
};

}  // namespace attendant::client
