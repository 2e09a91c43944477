// The analysis of a model on the sequences of one request: from the answers of Encode to statistics
// and maps of every head.
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

struct HeadInspection {
  HeadStatistics statistics;
  Matrix map;  // Coarsen(P, cells)
};

struct LayerInspection {
  uint32_t layer = 0;
  double token_uniformity = 0;  // of what leaves the layer
  std::vector<HeadInspection> heads;
};

struct SequenceInspection {
  std::vector<int64_t> positions;  // of the kept tokens, in the sequence's row; before those of
                                   // features the model's own rows
  std::vector<int64_t> token_ids;  // of them; empty if the input was not token ids
  // The least frequent of token_ids, counted over all sequences, ascending; empty if there are none
  // or all are equally frequent.
  std::vector<int64_t> rare_ids;
  std::optional<double> input_uniformity;  // of the hidden states that were sent
  std::vector<LayerInspection> layers;
};

struct Inspection {
  ModelInfo model;
  std::string compute_type;  // as in Execution
  int64_t cells = 0;         // of a map's side at most
  std::vector<SequenceInspection> sequences;
};

// Takes requests apart into their sequences and answers into their layers.
class Inspector {
 public:
  // The request must be one that the server has answered, or will: INVALID_ARGUMENT if its shapes
  // are none that it would take, or nothing is kept.
  static absl::StatusOr<Inspector> Create(const EncodeRequest& request, const ModelInfo& model,
                                          int64_t cells);

  // Layers whose probabilities and hidden states fit an answer of this size, at least 1.
  int64_t LayersThatFit(int64_t answer_bytes) const;

  // Adds the layers of an answer, float32, that has both tensors of each. INTERNAL if their shapes
  // are not what was asked for.
  absl::Status Add(const EncodeResult& result);

  const Inspection& inspection() const { return inspection_; }

 private:
  // Where a sequence's tokens are.
  struct Rows {
    std::vector<int64_t> positions;  // key columns: of kept tokens, behind the model's own rows
    int64_t input_row = 0;           // of its first token among the rows that are sent
    int64_t first_row = 0;           // of its first row among those of an answer
    std::vector<bool> rare;          // of each position: whether its id is; or empty
  };

  Inspector() = default;
  absl::Status FindRows(const EncodeRequest& request, const Tensor& tokens, size_t packed_rank);
  absl::Status AddInput(const EncodeRequest& request);
  void FindRareIds();
  absl::Status AddHeads(const Tensor& probabilities, int64_t sequence,
                        LayerInspection& layer) const;

  Inspection inspection_;
  std::vector<Rows> rows_;
  int64_t own_rows_ = 0;    // that the model puts before each sequence
  int64_t length_ = 0;      // S, and T below, of the answers: they count the own rows
  int64_t token_rows_ = 0;  // B S, or T
};

}  // namespace attendant::client
