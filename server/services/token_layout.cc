#include "server/services/token_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "server/services/status_mapping.h"

namespace attendant::server {
namespace {

absl::Status CheckTokenCount(const TokenClaims& claims, int64_t max_tokens) {
  const std::optional<int64_t> rows = ElementCount(claims.shape);
  if (rows && *rows <= max_tokens) return absl::OkStatus();
  return Refusal(claims.field + ".shape", absl::StrCat("at most ", max_tokens, " tokens"),
                 ShapeText(claims.shape));
}

absl::Status CheckLengths(const TokenClaims& claims, int64_t max) {
  for (size_t i = 0; i < claims.lengths.size(); ++i) {
    if (claims.lengths[i] >= 0 && claims.lengths[i] <= max) continue;
    return Refusal(absl::StrCat(claims.scope, "lengths[", i, "]"), absl::StrCat("0..", max),
                   absl::StrCat(claims.lengths[i]));
  }
  return absl::OkStatus();
}

// Appends the run to the layout, merging it with the one before if they touch.
void AddRun(TokenLayout& layout, int64_t first, int64_t count) {
  if (count == 0) return;
  if (!layout.runs.empty() && layout.runs.back().first + layout.runs.back().count == first) {
    layout.runs.back().count += count;
  } else {
    layout.runs.push_back({first, count});
  }
}

// Appends a sequence that keeps the first `length` tokens of the row that starts at `row`.
void AddLeading(TokenLayout& layout, int64_t row, int64_t length) {
  AddRun(layout, row, length);
  for (int64_t i = 0; i < length; ++i) layout.positions.push_back(static_cast<int32_t>(i));
  layout.cu_seqlens.push_back(static_cast<int32_t>(layout.positions.size()));
}

// Appends a sequence that keeps the tokens whose mask is not zero.
void AddMasked(TokenLayout& layout, int64_t row, absl::Span<const int64_t> mask) {
  int64_t kept = 0;
  for (int64_t s = 0; s < static_cast<int64_t>(mask.size()); ++s) {
    if (mask[s] == 0) continue;
    layout.leading &= s == kept++;
    AddRun(layout, row + s, 1);
    layout.positions.push_back(static_cast<int32_t>(s));
  }
  layout.cu_seqlens.push_back(static_cast<int32_t>(layout.positions.size()));
}

absl::StatusOr<TokenLayout> LayOutPacked(const TokenClaims& claims, int64_t max_tokens) {
  const int64_t tokens = claims.shape[0];
  const int64_t sequences = static_cast<int64_t>(claims.lengths.size());
  if (claims.attention_mask) {
    return Refusal(claims.scope + "attention_mask", "none with packed tokens", "one");
  }
  if (sequences < 1 || sequences > max_tokens) {
    return Refusal(claims.scope + "lengths",
                   absl::StrCat("1 to ", max_tokens, " numbers with packed ", claims.field),
                   absl::StrCat(sequences));
  }
  if (absl::Status status = CheckLengths(claims, tokens); !status.ok()) return status;
  int64_t sum = 0;
  for (int64_t length : claims.lengths) sum += length;
  if (sum != tokens) {
    return Refusal(claims.scope + "lengths",
                   absl::StrCat("a sum of ", tokens, ", the rows of ", claims.field),
                   absl::StrCat(sum));
  }
  TokenLayout layout{.packed = true, .sequences = sequences, .rows = tokens};
  for (int64_t length : claims.lengths) {
    layout.padded_length = std::max(layout.padded_length, length);
    AddLeading(layout, layout.cu_seqlens.back(), length);
  }
  return layout;
}

absl::Status AddMaskedRows(const WireTensor& tensor, TokenLayout& layout) {
  const int64_t length = layout.padded_length;
  if (absl::Status status = CheckShape(tensor, {layout.sequences, length}, "[B, S] = ");
      !status.ok()) {
    return status;
  }
  absl::StatusOr<CheckedTensor> mask = CheckTensor(tensor, ElementKind::kIntegerOrBool);
  if (!mask.ok()) return mask.status();
  std::vector<int64_t> row(length);
  for (int64_t b = 0; b < layout.sequences; ++b) {
    mask->data.ReadIntegers(mask->dtype, b * length, length, row.data());
    AddMasked(layout, b * length, row);
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenLayout> LayOutPadded(const TokenClaims& claims) {
  const int64_t sequences = claims.shape[0];
  const int64_t length = claims.shape[1];
  TokenLayout layout{.sequences = sequences, .padded_length = length, .rows = sequences * length};
  if (claims.attention_mask) {
    if (!claims.lengths.empty()) {
      return Refusal(claims.scope + "attention_mask", "either it or lengths", "both");
    }
    absl::Status status = AddMaskedRows(*claims.attention_mask, layout);
    if (!status.ok()) return status;
    return layout;
  }
  if (!claims.lengths.empty()) {
    if (static_cast<int64_t>(claims.lengths.size()) != sequences) {
      return Refusal(claims.scope + "lengths", absl::StrCat("B = ", sequences, " numbers"),
                     absl::StrCat(claims.lengths.size()));
    }
    if (absl::Status status = CheckLengths(claims, length); !status.ok()) return status;
  }
  for (int64_t b = 0; b < sequences; ++b) {
    AddLeading(layout, b * length, claims.lengths.empty() ? length : claims.lengths[b]);
  }
  return layout;
}

}  // namespace

TokenLayout WithRowsBefore(const TokenLayout& layout, int64_t rows) {
  TokenLayout longer{.packed = layout.packed,
                     .sequences = layout.sequences,
                     .padded_length = layout.padded_length + rows,
                     .leading = layout.leading};
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const int64_t first = layout.packed ? longer.rows : b * longer.padded_length;
    longer.rows +=
        layout.packed ? (layout.length(b) > 0 ? layout.length(b) + rows : 0) : longer.padded_length;
    if (layout.length(b) > 0) {
      for (int64_t i = 0; i < rows; ++i) longer.positions.push_back(static_cast<int32_t>(i));
      AddRun(longer, first, rows);
    }
    for (const int32_t position : layout.positions_of(b)) {
      longer.positions.push_back(position + static_cast<int32_t>(rows));
      AddRun(longer, first + rows + position, 1);
    }
    longer.cu_seqlens.push_back(static_cast<int32_t>(longer.positions.size()));
  }
  return longer;
}

TokenLayout WithRangesKept(const TokenLayout& layout,
                           absl::FunctionRef<TokenRange(int64_t sequence)> range) {
  TokenLayout shorter{.packed = layout.packed,
                      .sequences = layout.sequences,
                      .padded_length = layout.padded_length,
                      .rows = layout.rows,
                      .leading = layout.leading};
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const TokenRange kept = range(b);
    const int64_t first_row = layout.packed ? layout.cu_seqlens[b] : b * layout.padded_length;
    shorter.leading &= kept.first == 0;
    for (const int32_t position : layout.positions_of(b).subspan(kept.first, kept.count)) {
      AddRun(shorter, first_row + position, 1);
      shorter.positions.push_back(position);
    }
    shorter.cu_seqlens.push_back(static_cast<int32_t>(shorter.positions.size()));
  }
  return shorter;
}

absl::StatusOr<TokenLayout> LayOutTokens(const TokenClaims& claims, int64_t max_tokens) {
  if (absl::Status status = CheckTokenCount(claims, max_tokens); !status.ok()) return status;
  return claims.shape.size() == 1 ? LayOutPacked(claims, max_tokens) : LayOutPadded(claims);
}

std::vector<int32_t> TokensOfRows(const TokenLayout& layout, absl::Span<const int64_t> rows) {
  std::vector<int32_t> token_of(layout.rows, -1);
  int32_t token = 0;
  for (const RowRun& run : layout.runs) {
    for (int64_t i = 0; i < run.count; ++i) token_of[run.first + i] = token++;
  }
  std::vector<int32_t> tokens;
  tokens.reserve(rows.size());
  for (const int64_t row : rows) tokens.push_back(token_of[row]);
  return tokens;
}

}  // namespace attendant::server
