#include "server/tensors/token_layout.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

absl::Status CheckTokenCount(const std::string& field, absl::Span<const int64_t> shape,
                             const TokenFields& fields) {
  const std::optional<int64_t> rows = ElementCount(shape);
  if (rows && *rows <= fields.max_tokens) return absl::OkStatus();
  return InvalidField(field + ".shape",
                      absl::StrCat("at most ", fields.max_tokens, " tokens (", fields.limit, ")"),
                      ShapeText(shape));
}

absl::Status CheckLengths(const TokenFields& fields, int64_t max) {
  for (size_t i = 0; i < fields.lengths.size(); ++i) {
    if (fields.lengths[i] >= 0 && fields.lengths[i] <= max) continue;
    return InvalidField(absl::StrCat(fields.scope, "lengths[", i, "]"), absl::StrCat("0..", max),
                        absl::StrCat(fields.lengths[i]));
  }
  return absl::OkStatus();
}

// The layout before its first sequence is appended.
TokenLayout WithoutTokens(const TokenLayout& layout) {
  return {.packed = layout.packed,
          .sequence_first = layout.sequence_first,
          .sequences = layout.sequences,
          .padded_length = layout.padded_length,
          .rows = layout.rows,
          .leading = layout.leading};
}

// Returns the row of a position in the sequence being appended. A packed layout must keep all
// tokens.
int64_t RowAt(const TokenLayout& layout, int64_t position) {
  const int64_t sequence = std::ssize(layout.cu_seqlens) - 1;
  if (layout.packed) return layout.cu_seqlens.back() + position;
  if (layout.sequence_first) return position * layout.sequences + sequence;
  return sequence * layout.padded_length + position;
}

// Appends a token to that sequence. Merges its row with the previous run if they are adjacent.
void AddToken(TokenLayout& layout, int64_t row, int64_t position) {
  if (!layout.runs.empty() && layout.runs.back().first + layout.runs.back().count == row) {
    ++layout.runs.back().count;
  } else {
    layout.runs.push_back({row, 1});
  }
  layout.positions.push_back(static_cast<int32_t>(position));
}

void EndSequence(TokenLayout& layout) {
  layout.cu_seqlens.push_back(static_cast<int32_t>(layout.positions.size()));
}

// Appends a sequence that keeps its first `length` tokens.
void AddLeading(TokenLayout& layout, int64_t length) {
  for (int64_t i = 0; i < length; ++i) AddToken(layout, RowAt(layout, i), i);
  EndSequence(layout);
}

// Appends a sequence that keeps the tokens with a non-zero mask.
void AddMasked(TokenLayout& layout, absl::Span<const int64_t> mask) {
  int64_t kept = 0;
  for (int64_t s = 0; s < static_cast<int64_t>(mask.size()); ++s) {
    if (mask[s] == 0) continue;
    layout.leading &= s == kept++;
    AddToken(layout, RowAt(layout, s), s);
  }
  EndSequence(layout);
}

absl::StatusOr<TokenLayout> LayOutPacked(const std::string& field, int64_t tokens,
                                         const TokenFields& fields) {
  const int64_t sequences = static_cast<int64_t>(fields.lengths.size());
  if (fields.sequence_first) {
    return InvalidField("layout", absl::StrCat("BATCH_FIRST with packed ", field),
                        "SEQUENCE_FIRST");
  }
  if (fields.attention_mask) {
    return CannotCombine(fields.scope + "attention_mask",
                         absl::StrCat("packed ", field, "; send lengths"));
  }
  if (sequences < 1 || sequences > fields.max_tokens) {
    return InvalidField(fields.scope + "lengths",
                        absl::StrCat("1..", fields.max_tokens, " numbers with packed ", field),
                        absl::StrCat(sequences));
  }
  RETURN_IF_ERROR(CheckLengths(fields, tokens));
  int64_t sum = 0;
  for (int64_t length : fields.lengths) sum += length;
  if (sum != tokens) {
    return InvalidField(fields.scope + "lengths",
                        absl::StrCat("a sum of ", tokens, " (the rows of ", field, ")"),
                        absl::StrCat(sum));
  }
  TokenLayout layout{.packed = true, .sequences = sequences, .rows = tokens};
  for (int64_t length : fields.lengths) {
    layout.padded_length = std::max(layout.padded_length, length);
    AddLeading(layout, length);
  }
  return layout;
}

absl::Status AddMaskedRows(const WireTensor& tensor, TokenLayout& layout) {
  const int64_t length = layout.padded_length;
  RETURN_IF_ERROR(CheckShape(tensor, {layout.sequences, length}, "[B, S] = "));
  ASSIGN_OR_RETURN(const CheckedTensor mask, CheckTensor(tensor, ElementKind::kIntegerOrBool));
  std::vector<int64_t> row(length);
  for (int64_t b = 0; b < layout.sequences; ++b) {
    mask.data.ReadIntegers(mask.dtype, b * length, length, row.data());
    AddMasked(layout, row);
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenLayout> LayOutPadded(absl::Span<const int64_t> shape,
                                         const TokenFields& fields) {
  const int64_t sequences = shape[fields.sequence_first ? 1 : 0];
  const int64_t length = shape[fields.sequence_first ? 0 : 1];
  TokenLayout layout{.sequence_first = fields.sequence_first,
                     .sequences = sequences,
                     .padded_length = length,
                     .rows = sequences * length};
  if (fields.attention_mask) {
    if (!fields.lengths.empty()) {
      return CannotCombine(fields.scope + "attention_mask", "lengths; send one of them");
    }
    RETURN_IF_ERROR(AddMaskedRows(*fields.attention_mask, layout));
    return layout;
  }
  if (!fields.lengths.empty()) {
    if (static_cast<int64_t>(fields.lengths.size()) != sequences) {
      return InvalidField(fields.scope + "lengths", absl::StrCat("B = ", sequences, " numbers"),
                          absl::StrCat(fields.lengths.size()));
    }
    RETURN_IF_ERROR(CheckLengths(fields, length));
  }
  for (int64_t b = 0; b < sequences; ++b) {
    AddLeading(layout, fields.lengths.empty() ? length : fields.lengths[b]);
  }
  return layout;
}

}  // namespace

TokenLayout WithRowsBefore(const TokenLayout& layout, int64_t rows) {
  TokenLayout longer = WithoutTokens(layout);
  longer.padded_length += rows;
  longer.rows = 0;
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const int64_t before = layout.length(b) > 0 ? rows : 0;
    longer.rows += layout.packed ? before + layout.length(b) : longer.padded_length;
    for (int64_t i = 0; i < before; ++i) AddToken(longer, RowAt(longer, i), i);
    for (const int32_t position : layout.positions_of(b)) {
      AddToken(longer, RowAt(longer, rows + position), rows + position);
    }
    EndSequence(longer);
  }
  return longer;
}

TokenLayout WithRangesKept(const TokenLayout& layout,
                           absl::FunctionRef<TokenRange(int64_t sequence)> range) {
  TokenLayout shorter = WithoutTokens(layout);
  const std::vector<int64_t> rows = RowsOfTokens(layout);
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const TokenRange kept = range(b);
    shorter.leading &= kept.first == 0;
    const int64_t first = layout.cu_seqlens[b] + kept.first;
    for (int64_t k = first; k < first + kept.count; ++k) {
      AddToken(shorter, rows[k], layout.positions[k]);
    }
    EndSequence(shorter);
  }
  return shorter;
}

absl::StatusOr<TokenLayout> LayOutTokens(const std::string& field, absl::Span<const int64_t> shape,
                                         const TokenFields& fields) {
  RETURN_IF_ERROR(CheckTokenCount(field, shape, fields));
  if (shape.size() == 1) return LayOutPacked(field, shape[0], fields);
  return LayOutPadded(shape, fields);
}

TokenLayout SequencesAt(const TokenLayout& layout, absl::Span<const int64_t> sequences) {
  TokenLayout part = WithoutTokens(layout);
  part.sequences = static_cast<int64_t>(sequences.size());
  int64_t tokens = 0;
  for (const int64_t b : sequences) tokens += layout.length(b);
  part.positions.reserve(tokens);
  auto run = layout.runs.begin();
  int64_t before = 0;  // tokens in the runs before `run`
  for (const int64_t b : sequences) {
    for (int32_t token = layout.cu_seqlens[b]; token < layout.cu_seqlens[b + 1]; ++token) {
      while (token >= before + run->count) before += (run++)->count;
      AddToken(part, run->first + token - before, layout.positions[token]);
    }
    EndSequence(part);
  }
  return part;
}

std::vector<int64_t> RowsOfTokens(const TokenLayout& layout) {
  std::vector<int64_t> rows;
  rows.reserve(layout.tokens());
  for (const RowRun& run : layout.runs) {
    for (int64_t i = 0; i < run.count; ++i) rows.push_back(run.first + i);
  }
  return rows;
}

std::vector<int32_t> TokensOfRows(const TokenLayout& layout) {
  std::vector<int32_t> token_of(layout.rows, -1);
  int32_t token = 0;
  for (const int64_t row : RowsOfTokens(layout)) token_of[row] = token++;
  return token_of;
}

std::vector<int32_t> TokensOfRows(const TokenLayout& layout, absl::Span<const int64_t> rows) {
  const std::vector<int32_t> token_of = TokensOfRows(layout);
  std::vector<int32_t> tokens;
  tokens.reserve(rows.size());
  for (const int64_t row : rows) tokens.push_back(token_of[row]);
  return tokens;
}

}  // namespace attendant::server
