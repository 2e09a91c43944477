#include "client/inspect/inspection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace attendant::client {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kMostOwnRows = 1 << 16;

absl::Status NoSuchInput(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("cannot inspect this input: ", what));
}

absl::Status UnsoundAnswer(uint32_t layer, const char* tensor) {
  return absl::InternalError(
      absl::StrCat("the server's response has no valid ", tensor, " of layer ", layer));
}

// Returns the rows `rows` and the columns `columns` of a float32 matrix with `width` columns.
Matrix Gather(const float* first, int64_t width, absl::Span<const int64_t> rows,
              absl::Span<const int64_t> columns) {
  Matrix gathered(static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < columns.size(); ++j) {
      gathered(static_cast<int64_t>(i), static_cast<int64_t>(j)) =
          first[rows[i] * width + columns[j]];
    }
  }
  return gathered;
}

std::vector<int64_t> Count(int64_t end) {
  std::vector<int64_t> numbers(static_cast<size_t>(end));
  for (int64_t i = 0; i < end; ++i) numbers[static_cast<size_t>(i)] = i;
  return numbers;
}

const LayerTensor* Find(const std::vector<LayerTensor>& tensors, uint32_t layer) {
  for (const LayerTensor& tensor : tensors) {
    if (tensor.layer == layer) return &tensor;
  }
  return nullptr;
}

}  // namespace

int64_t HeadNumber(const ModelInfo& model, int64_t layer, int64_t head) {
  for (const v1::PrunedLayer& pruned : model.pruned_layers()) {
    if (pruned.layer() == layer && head < pruned.heads_size()) {
      return pruned.heads(static_cast<int>(head));
    }
  }
  return head;
}

absl::StatusOr<Inspector> Inspector::Create(const EncodeRequest& request, const ModelInfo& model,
                                            int64_t cells) {
  Inspector inspector;
  inspector.inspection_.model = model;
  inspector.inspection_.cells = cells;
  if (request.features && model.has_front()) inspector.own_rows_ = model.front().own_rows();
  if (inspector.own_rows_ < 0 || inspector.own_rows_ > kMostOwnRows) {
    return NoSuchInput(
        absl::StrCat("the server reports ", inspector.own_rows_, " prefix tokens before it"));
  }
  const bool has_ids = request.token_ids.has_value();
  const std::optional<Tensor>& tokens = has_ids            ? request.token_ids
                                        : request.features ? request.features
                                                           : request.hidden_states;
  if (!tokens) return NoSuchInput("it is missing");
  if (request.layout != Layout::kBatchFirst) return NoSuchInput("its layout is sequence-first");
  absl::Status status = inspector.FindRows(request, *tokens, has_ids ? 1 : 2);
  if (status.ok()) status = inspector.AddInput(request);
  if (!status.ok()) return status;
  return inspector;
}

absl::Status Inspector::FindRows(const EncodeRequest& request, const Tensor& tokens,
                                 size_t packed_rank) {
  if (absl::Status status = Validate(tokens); !status.ok()) return status;
  if (tokens.data.empty()) return NoSuchInput("no token is kept");  // shaped [2^60, 0]
  const bool packed = tokens.shape.size() == packed_rank;
  if (!packed && tokens.shape.size() != packed_rank + 1) {
    return NoSuchInput(absl::StrCat("its shape is ", ShapeToString(tokens.shape)));
  }
  const std::vector<int64_t>& lengths = request.lengths;
  const int64_t sequences = packed ? static_cast<int64_t>(lengths.size()) : tokens.shape[0];
  int64_t longest = 0;
  for (const int64_t length : lengths) longest = std::max(longest, length);
  if (!packed) longest = tokens.shape[1];
  const int64_t token_rows = packed ? tokens.shape[0] : sequences * longest;
  absl::StatusOr<std::vector<int64_t>> mask = std::vector<int64_t>();
  if (request.attention_mask) mask = ToInt64s(*request.attention_mask);
  if (!mask.ok()) return mask.status();
  const bool has_lengths = packed || !lengths.empty();
  if ((request.attention_mask && static_cast<int64_t>(mask->size()) != token_rows) ||
      (has_lengths && static_cast<int64_t>(lengths.size()) != sequences)) {
    return NoSuchInput("its mask or lengths do not match its sequences");
  }
  length_ = longest + own_rows_;
  int64_t input_row = 0;
  int64_t kept = 0;
  for (int64_t b = 0; b < sequences; ++b) {
    Rows& rows = rows_.emplace_back();
    rows.input_row = input_row;
    rows.first_row = token_rows_;
    const int64_t length = has_lengths ? lengths[static_cast<size_t>(b)] : longest;
    const int64_t room = packed ? token_rows - input_row : longest;
    if (length < 0 || length > room) return NoSuchInput("its lengths do not match its tokens");
    rows.length = packed ? length : longest;
    for (int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<size_t>(input_row + i);
      if (mask->empty() || (*mask)[at] != 0) rows.positions.push_back(own_rows_ + i);
    }
    kept += static_cast<int64_t>(rows.positions.size());
    const int64_t own = rows.positions.empty() ? 0 : own_rows_;
    const std::vector<int64_t> before = Count(own);
    rows.positions.insert(rows.positions.begin(), before.begin(), before.end());
    input_row += rows.length;
    token_rows_ += packed ? length + own : length_;
  }
  return kept > 0 ? absl::OkStatus() : NoSuchInput("no token is kept");
}

absl::Status Inspector::AddInput(const EncodeRequest& request) {
  absl::StatusOr<std::vector<int64_t>> ids = std::vector<int64_t>();
  if (request.token_ids) ids = ToInt64s(*request.token_ids);
  if (!ids.ok()) return ids.status();
  absl::StatusOr<std::vector<float>> states = std::vector<float>();
  if (request.hidden_states) states = ToFloats(*request.hidden_states);
  if (!states.ok()) return states.status();
  for (const Rows& rows : rows_) {
    SequenceInspection& sequence = inspection_.sequences.emplace_back();
    sequence.positions = rows.positions;
    if (request.token_ids) {
      for (const int64_t i : rows.positions) {
        sequence.token_ids.push_back((*ids)[static_cast<size_t>(rows.input_row + i)]);
      }
    } else if (request.hidden_states) {
      const int64_t width = request.hidden_states->shape.back();
      sequence.input_uniformity = TokenUniformity(
          Gather(states->data() + rows.input_row * width, width, rows.positions, Count(width)));
    }
  }
  FindRareIds();
  return absl::OkStatus();
}

void Inspector::FindRareIds() {
  std::map<int64_t, int64_t> counts;
  for (const SequenceInspection& sequence : inspection_.sequences) {
    for (const int64_t id : sequence.token_ids) ++counts[id];
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    SequenceInspection& sequence = inspection_.sequences[i];
    const std::set<int64_t> ids(sequence.token_ids.begin(), sequence.token_ids.end());
    int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
    for (const int64_t id : ids) {
      least = std::min(least, counts[id]);
      most = std::max(most, counts[id]);
    }
    if (least >= most) continue;
    for (const int64_t id : ids) {
      if (counts[id] == least) sequence.rare_ids.push_back(id);
    }
    for (const int64_t id : sequence.token_ids) rows_[i].rare.push_back(counts[id] == least);
  }
}

absl::Status Inspector::NameTokens(const std::vector<std::vector<std::string>>& texts) {
  if (texts.size() != rows_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("expected one line of labels per sequence, ",
                                                   rows_.size(), "; got ", texts.size()));
  }
  for (size_t b = 0; b < texts.size(); ++b) {
    SequenceInspection& sequence = inspection_.sequences[b];
    const auto given = static_cast<int64_t>(texts[b].size());
    const int64_t needed =
        sequence.positions.empty() ? 0 : sequence.positions.back() + 1 - own_rows_;
    if (given < needed || given > rows_[b].length) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", b, ": expected ", rows_[b].length, " texts; got ", given));
    }
    for (const int64_t position : sequence.positions) {
      const int64_t token = position - own_rows_;
      sequence.token_texts.push_back(token < 0 ? absl::StrCat("prefix ", position)
                                               : texts[b][static_cast<size_t>(token)]);
    }
  }
  return absl::OkStatus();
}

int64_t Inspector::LayersThatFit(int64_t answer_bytes) const {
  const ModelInfo& model = inspection_.model;
  const double length = static_cast<double>(length_);
  const double probabilities = static_cast<double>(rows_.size()) *
                               static_cast<double>(model.layer().heads()) * length * length;
  const double states =
      static_cast<double>(token_rows_) * static_cast<double>(model.layer().hidden_size());
  const double layer_bytes = (probabilities + states) * kFloatBytes;
  constexpr int64_t kBesideTensors = 1 << 16;
  const double fit =
      static_cast<double>(answer_bytes - kBesideTensors) / std::max(layer_bytes, 1.0);
  return static_cast<int64_t>(
      std::clamp(fit, 1.0, std::max(1.0, static_cast<double>(model.layers()))));
}

absl::Status Inspector::Add(const EncodeResult& result) {
  inspection_.compute_type = result.execution.compute_type;
  const auto sequences = static_cast<int64_t>(rows_.size());
  for (const LayerTensor& probabilities : result.attention_probabilities) {
    const uint32_t layer = probabilities.layer;
    const LayerTensor* output = Find(result.intermediate, layer);
    if (output == nullptr) return UnsoundAnswer(layer, "hidden states");
    const absl::StatusOr<std::vector<float>> states = ToFloats(output->tensor);
    const int64_t width = output->tensor.shape.empty() ? 0 : output->tensor.shape.back();
    if (!states.ok() || static_cast<int64_t>(states->size()) != token_rows_ * width) {
      return UnsoundAnswer(layer, "hidden states");
    }
    for (int64_t b = 0; b < sequences; ++b) {
      const Rows& rows = rows_[static_cast<size_t>(b)];
      LayerInspection inspected;
      inspected.layer = layer;
      inspected.token_uniformity = TokenUniformity(
          Gather(states->data() + rows.first_row * width, width, rows.positions, Count(width)));
      if (absl::Status status = AddHeads(probabilities.tensor, b, inspected); !status.ok()) {
        return status;
      }
      inspection_.sequences[static_cast<size_t>(b)].layers.push_back(std::move(inspected));
    }
  }
  return absl::OkStatus();
}

absl::Status Inspector::AddHeads(const Tensor& probabilities, int64_t sequence,
                                 LayerInspection& layer) const {
  const std::vector<int64_t>& shape = probabilities.shape;
  const auto sequences = static_cast<int64_t>(rows_.size());
  const bool fits = shape.size() == 4 && shape[0] == sequences && shape[2] == length_ &&
                    shape[3] == length_ && probabilities.dtype == DataType::kFloat32 &&
                    Validate(probabilities).ok();
  if (!fits) return UnsoundAnswer(layer.layer, "attention probabilities");
  const int64_t heads = shape[1];
  const int64_t pairs = length_ * length_;
  const Rows& rows = rows_[static_cast<size_t>(sequence)];
  std::vector<float> head(static_cast<size_t>(pairs));
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t offset = (sequence * heads + h) * pairs * kFloatBytes;
    if (pairs > 0) {
      std::memcpy(head.data(), probabilities.data.data() + offset,
                  static_cast<size_t>(pairs * kFloatBytes));
    }
    const Matrix p = Gather(head.data(), length_, rows.positions, rows.positions);
    layer.heads.push_back({HeadNumber(inspection_.model, layer.layer, h), MeasureHead(p, rows.rare),
                           Coarsen(p, inspection_.cells)});
  }
  return absl::OkStatus();
}

}  // namespace attendant::client
