#include "server/request/token_ids.h"

#include <algorithm>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

std::string IndexText(const CheckedTensor& tensor, int64_t element) {
  if (tensor.shape.size() == 1) return absl::StrCat("[", element, "]");
  return absl::StrCat("[", element / tensor.dim(1), ", ", element % tensor.dim(1), "]");
}

// `rows` is the size of the table that the ids point into.
absl::StatusOr<std::vector<int32_t>> ReadIds(const char* field, const CheckedTensor& tensor,
                                             int64_t rows, const TokenLayout& layout) {
  std::vector<int32_t> kept;
  kept.reserve(layout.tokens());
  std::vector<int64_t> ids;
  for (const RowRun& run : layout.runs) {
    ids.resize(run.count);
    tensor.data.ReadIntegers(tensor.dtype, run.first, run.count, ids.data());
    for (int64_t i = 0; i < run.count; ++i) {
      if (ids[i] < 0 || ids[i] >= rows) {
        return InvalidField(absl::StrCat(field, IndexText(tensor, run.first + i)),
                            absl::StrCat("0..", rows - 1), absl::StrCat(ids[i]));
      }
      kept.push_back(static_cast<int32_t>(ids[i]));
    }
  }
  return kept;
}

// Distance of the k-th kept token of a row from its `first` one, as default positions count.
int32_t RelativePosition(const EmbeddingShape& embeddings, absl::Span<const int32_t> positions,
                         int64_t k, int64_t first = 0) {
  return embeddings.position_rule == PositionRule::kCountNotPadding
             ? static_cast<int32_t>(k - first)
             : positions[k] - positions[first];
}

// Positions of kept tokens, [T], before they are known to be in the table.
std::vector<int64_t> IndicesFromFirstKept(const IdTensors& of, const EmbeddingShape& embeddings) {
  const TokenLayout& layout = of.layout;
  std::vector<int64_t> result;
  result.reserve(layout.tokens());
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const absl::Span<const int32_t> positions = layout.positions_of(b);
    for (const int32_t position : positions) {
      result.push_back(embeddings.first_position + of.tokens_before + position - positions.front());
    }
  }
  return result;
}

// Like IndicesFromFirstKept, but reads the ids of all rows, including masked ones. Tokens that were
// cut before a sequence do not count.
std::vector<int64_t> CountsOfNotPadding(const IdTensors& of, const EmbeddingShape& embeddings) {
  const TokenLayout& layout = of.layout;
  std::vector<int64_t> ids(layout.rows);
  of.token_ids.data.ReadIntegers(of.token_ids.dtype, 0, layout.rows, ids.data());
  const auto counts = [&](int64_t row) { return ids[row] != embeddings.padding_id() ? 1 : 0; };
  const std::vector<int64_t> rows = RowsOfTokens(layout);
  const int64_t step = layout.sequence_first ? layout.sequences : 1;
  std::vector<int64_t> result;
  result.reserve(layout.tokens());
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const absl::Span<const int32_t> positions = layout.positions_of(b);
    if (positions.empty()) continue;
    const bool was_cut = positions.front() != of.whole.positions_of(b).front();
    int64_t row = rows[layout.cu_seqlens[b]] - (was_cut ? 0 : positions.front() * step);
    int64_t counted = of.tokens_before;
    for (int64_t k = layout.cu_seqlens[b]; k < layout.cu_seqlens[b + 1]; ++k) {
      for (; row < rows[k]; row += step) counted += counts(row);
      result.push_back(counts(row) ? embeddings.first_position + counted : embeddings.padding_id());
    }
  }
  return result;
}

absl::StatusOr<std::vector<int32_t>> DefaultPositions(const IdTensors& of,
                                                      const EmbeddingShape& embeddings) {
  const TokenLayout& layout = of.layout;
  const std::vector<int64_t> positions = embeddings.position_rule == PositionRule::kCountNotPadding
                                             ? CountsOfNotPadding(of, embeddings)
                                             : IndicesFromFirstKept(of, embeddings);
  std::vector<int32_t> result;
  result.reserve(positions.size());
  for (int64_t b = 0; b < layout.sequences; ++b) {
    int64_t span = 0;
    for (int64_t k = layout.cu_seqlens[b]; k < layout.cu_seqlens[b + 1]; ++k) {
      span = std::max(span, positions[k] - embeddings.first_position + 1);
      result.push_back(static_cast<int32_t>(positions[k]));
    }
    if (span > embeddings.longest_sequence()) {
      return InvalidField(
          "token_ids",
          absl::StrCat("at most ", embeddings.longest_sequence(), " positions in a sequence"),
          absl::StrCat(span, " in sequence ", b));
    }
  }
  return result;
}

// Numbers that follow each other where tokens do in their padded row, but from no row to the next.
std::vector<int64_t> OrdinalsOf(const TokenLayout& layout) {
  std::vector<int64_t> ordinals;
  ordinals.reserve(layout.tokens());
  for (int64_t b = 0; b < layout.sequences; ++b) {
    for (const int32_t position : layout.positions_of(b)) {
      ordinals.push_back(b * (layout.padded_length + 1) + position);
    }
  }
  return ordinals;
}

}  // namespace

KeptIds KeptIds::OfSequences(const TokenLayout& layout, absl::Span<const int64_t> sequences) const {
  const auto part = [&](const auto& ids) {
    std::decay_t<decltype(ids)> own;
    if (ids.empty()) return own;
    for (const int64_t b : sequences) {
      own.insert(own.end(), ids.begin() + layout.cu_seqlens[b],
                 ids.begin() + layout.cu_seqlens[b + 1]);
    }
    return own;
  };
  return {part(words), part(positions), part(token_types), part(ordinals)};
}

int64_t CountedTokens(const KeptIds& ids, const EmbeddingShape& embeddings) {
  const auto tokens = static_cast<int64_t>(ids.words.size());
  if (embeddings.position_rule != PositionRule::kCountNotPadding) return tokens;
  return tokens - absl::c_count(ids.words, embeddings.padding_id());
}

TokenLayout Truncate(const TokenLayout& layout, const EmbeddingShape& embeddings,
                     int64_t max_length, text::TruncationSide side) {
  return WithRangesKept(layout, [&](int64_t sequence) {
    const absl::Span<const int32_t> positions = layout.positions_of(sequence);
    int64_t first = 0, end = layout.length(sequence);
    const auto fits = [&] {
      return max_length == 0 || first == end ||
             RelativePosition(embeddings, positions, end - 1, first) < max_length;
    };
    while (!fits()) side == text::TruncationSide::kRight ? --end : ++first;
    return TokenRange{first, end - first};
  });
}

absl::StatusOr<KeptIds> ReadKeptIds(const IdTensors& tensors, const EmbeddingShape& embeddings) {
  const TokenLayout& layout = tensors.layout;
  KeptIds kept;
  ASSIGN_OR_RETURN(kept.words,
                   ReadIds("token_ids", tensors.token_ids, embeddings.vocabulary, layout));
  if (tensors.token_type_ids) {
    ASSIGN_OR_RETURN(kept.token_types, ReadIds("token_type_ids", *tensors.token_type_ids,
                                               embeddings.token_types, layout));
  }
  if (tensors.position_ids) {
    ASSIGN_OR_RETURN(kept.positions,
                     ReadIds("position_ids", *tensors.position_ids, embeddings.positions, layout));
  } else if (embeddings.positions > 0) {
    ASSIGN_OR_RETURN(kept.positions, DefaultPositions(tensors, embeddings));
  }
  if (embeddings.has_neighbours) kept.ordinals = OrdinalsOf(layout);
  return kept;
}

}  // namespace attendant::server
