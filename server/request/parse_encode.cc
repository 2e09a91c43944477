#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/model/model_facts.h"
#include "server/request/parse_fields.h"
#include "server/request/token_rows.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using Request = v1::EncodeRequest;

// Fills the layers of the span.
absl::Status ParseSpan(const Request& request, ComputeRequest& compute) {
  const ModelDescription& model = compute.description();
  const LayerShape& layer = model.layer;
  RETURN_IF_ERROR(CheckNeedsNoCrossKv(layer));
  compute.span.layers = model.layers;
  if (request.has_layers()) {
    const int64_t first = request.layers().first();
    const int64_t count = request.layers().count();
    if (model.layers == 0) {
      return NotSupported("layers", "", compute.span.model->name, "it has only embeddings");
    }
    if (count < 1 || first + count > model.layers) {
      return InvalidField("layers",
                          absl::StrCat("a span of at least 1 layer within 0..", model.layers - 1),
                          absl::StrCat("first ", first, ", count ", count));
    }
    compute.span.first_layer = first;
    compute.span.layers = count;
  }
  if (compute.width() != layer.hidden_size && compute.span.layers > 1) {
    return InvalidField("layers",
                        absl::StrCat("1 layer (a layer takes ", layer.hidden_size,
                                     " columns and returns ", compute.width(), ")"),
                        absl::StrCat(compute.span.layers));
  }
  return absl::OkStatus();
}

// Fills the tokens of prompts that are not pooled, in the layout that is there.
absl::Status ParsePromptTokens(const Request& request, ComputeRequest& compute) {
  const auto& counts = request.prompt_tokens();
  if (counts.empty()) return absl::OkStatus();
  const TokenLayout& layout = compute.layout;
  if (!request.return_pooled() || request.pooling() == v1::CLASSIFIER) {
    return MissingFor("prompt_tokens", "return_pooled and a pooling other than CLASSIFIER");
  }
  if (counts.size() != 1 && counts.size() != layout.sequences) {
    return InvalidField("prompt_tokens", absl::StrCat("1 or B = ", layout.sequences, " numbers"),
                        absl::StrCat(counts.size()));
  }
  std::vector<int64_t> prompts(layout.sequences);
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const int i = counts.size() == 1 ? 0 : static_cast<int>(b);
    if (counts[i] < 0) {
      return InvalidField(absl::StrCat("prompt_tokens[", i, "]"), "0 or more",
                          absl::StrCat(counts[i]));
    }
    for (const int32_t position : layout.positions_of(b)) {
      if (position - layout.positions_of(b).front() < counts[i]) ++prompts[b];
    }
  }
  if (request.pooling() != v1::MODEL_POOLING || compute.description().pooling->excludes_prompt) {
    compute.outputs.pooled->prompt_tokens = std::move(prompts);
  }
  return absl::OkStatus();
}

// Reads ids that accompany token_ids and point into a table of `table_rows` rows.
absl::StatusOr<std::optional<CheckedTensor>> ParseOtherIds(const WireTensor& tensor, bool present,
                                                           const CheckedTensor& token_ids,
                                                           int64_t table_rows,
                                                           const std::string& model) {
  if (!present) return std::optional<CheckedTensor>();
  if (table_rows == 0) return NotSupported(tensor.field, "", model, "it has no table for them");
  RETURN_IF_ERROR(CheckShape(tensor, token_ids.shape, "the shape of token_ids, "));
  ASSIGN_OR_RETURN(CheckedTensor checked, CheckTensor(tensor, ElementKind::kInteger));
  return std::optional<CheckedTensor>(std::move(checked));
}

// Cuts the layout as the request asks.
absl::Status ParseTruncation(const Request& request, ComputeRequest& compute) {
  if (request.truncation() == v1::NO_TRUNCATION) return absl::OkStatus();
  if (!v1::Truncation_IsValid(request.truncation())) {
    return InvalidField("truncation", "a Truncation value",
                        absl::StrCat(static_cast<int>(request.truncation())));
  }
  if (!request.has_token_ids()) return MissingFor("truncation", "token_ids or texts");
  if (request.has_position_ids()) return CannotCombine("truncation", "position_ids");
  const bool from_left = request.truncation() == v1::TRUNCATE_LEFT;
  const EmbeddingShape& embeddings = *compute.description().embeddings;
  const int64_t max_length = MaxSequenceLength(embeddings, *compute.span.model->tokenization);
  TokenLayout kept =
      Truncate(compute.layout, embeddings, max_length,
               from_left ? text::TruncationSide::kLeft : text::TruncationSide::kRight);
  if (compute.outputs.pooled && from_left) {
    std::vector<int64_t>& prompts = compute.outputs.pooled->prompt_tokens;
    for (size_t b = 0; b < prompts.size(); ++b) {
      const int64_t cut = compute.layout.length(b) - kept.length(b);
      prompts[b] = std::max<int64_t>(0, prompts[b] - cut);
    }
  }
  compute.truncated_tokens = compute.layout.tokens() - kept.tokens();
  compute.layout = std::move(kept);
  return absl::OkStatus();
}

// Tokens of the sequence before this chunk; 0 if the request is not a chunk.
ChunkTokens TokensBefore(const ComputeRequest& compute) {
  return compute.sequence() == nullptr ? ChunkTokens() : compute.sequence()->tokens();
}

// Checks that the model can take sequences in chunks. The layers are there.
absl::Status CheckTakesChunks(const Request& request, const ComputeRequest& compute) {
  if (compute.sequence() == nullptr) return absl::OkStatus();
  if (const std::string why = WhyNotInChunks(compute.description()); !why.empty()) {
    return NotSupported("sequence", "", compute.span.model->name, why);
  }
  if (request.truncation() == v1::NO_TRUNCATION || !v1::Truncation_IsValid(request.truncation())) {
    return absl::OkStatus();
  }
  return CannotCombine("truncation", "sequence");
}

// Checks that the layout holds one chunk of a sequence.
absl::Status CheckChunk(const ComputeRequest& compute) {
  const TokenLayout& layout = compute.layout;
  if (compute.sequence() == nullptr || (layout.sequences == 1 && layout.leading)) {
    return absl::OkStatus();
  }
  return InvalidField("sequence", "one sequence in a chunk, without padding before a token",
                      layout.sequences == 1 ? "padding before a token"
                                            : absl::StrCat(layout.sequences, " sequences"));
}

// Fills layout and input.
absl::Status ParseTokenIds(const Request& request, const RequestPayloads& payloads,
                           const TokenFields& fields, ComputeRequest& compute) {
  if (!compute.description().embeddings) {
    return NotSupported("token_ids", "", compute.span.model->name,
                        "it has no embeddings; send hidden_states");
  }
  if (compute.span.first_layer != 0) {
    return InvalidField("layers.first", "0 with token_ids", absl::StrCat(compute.span.first_layer));
  }
  const WireTensor words =
      payloads.Of("token_ids", request.token_ids(), Request::kTokenIdsFieldNumber);
  const auto& dims = request.token_ids().shape();
  if (dims.size() != 2 && dims.size() != 1) {
    return InvalidField("token_ids.shape",
                        fields.sequence_first ? "[S, B]" : "[B, S], or [T] with lengths",
                        ShapeText({dims.data(), static_cast<size_t>(dims.size())}));
  }
  ASSIGN_OR_RETURN(CheckedTensor token_ids, CheckTensor(words, ElementKind::kInteger));
  const EmbeddingShape& embeddings = *compute.description().embeddings;
  const std::string& model = compute.span.model->name;
  const WireTensor type_ids =
      payloads.Of("token_type_ids", request.token_type_ids(), Request::kTokenTypeIdsFieldNumber);
  ASSIGN_OR_RETURN(auto types, ParseOtherIds(type_ids, request.has_token_type_ids(), token_ids,
                                             embeddings.token_types, model));
  const WireTensor position_ids =
      payloads.Of("position_ids", request.position_ids(), Request::kPositionIdsFieldNumber);
  ASSIGN_OR_RETURN(auto positions, ParseOtherIds(position_ids, request.has_position_ids(),
                                                 token_ids, embeddings.positions, model));
  ASSIGN_OR_RETURN(const TokenLayout layout, LayOutTokens("token_ids", token_ids.shape, fields));
  compute.layout = layout;
  RETURN_IF_ERROR(ParsePromptTokens(request, compute));
  RETURN_IF_ERROR(ParseTruncation(request, compute));
  ASSIGN_OR_RETURN(compute.input,
                   ReadKeptIds({compute.layout, layout, std::move(token_ids), std::move(types),
                                std::move(positions), TokensBefore(compute).counted},
                               embeddings));
  return absl::OkStatus();
}

// Checks that every row has a position in the model's table after the first `tokens_before`.
absl::Status CheckTablePositions(const TokenLayout& layout, int64_t tokens_before,
                                 const PatchEmbeddingShape& patches) {
  const int64_t positions = patches.features();
  if (positions == 0) return absl::OkStatus();
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const int64_t rows = tokens_before + (layout.packed ? layout.length(b) : layout.padded_length);
    if (rows == positions || rows == 0 || (rows < positions && !patches.needs_every)) continue;
    return InvalidField("features",
                        absl::StrCat(patches.needs_every ? "" : "at most ", positions,
                                     " rows in a sequence (the model's positions)"),
                        absl::StrCat(rows, " in sequence ", b));
  }
  return absl::OkStatus();
}

// Fills layout and input.
absl::Status ParseFeatures(const WireTensor& tensor, const TokenFields& fields,
                           ComputeRequest& compute) {
  const std::optional<PatchEmbeddingShape>& patches = compute.description().patch_embedding;
  if (!patches) {
    return NotSupported("features", "", compute.span.model->name,
                        "it has no patch embedding and no prefix tokens; send hidden_states");
  }
  if (compute.span.first_layer != 0) {
    return InvalidField("layers.first", "0 with features", absl::StrCat(compute.span.first_layer));
  }
  const bool are_pixels = patches->patch_size > 0 && tensor.head.shape_size() == 4;
  const int64_t width = patches->width(compute.description().layer.hidden_size);
  ASSIGN_OR_RETURN(TokenRows rows, are_pixels ? CheckPixels(tensor, *patches, fields)
                                              : CheckTokenRows(tensor, width, fields));
  compute.layout = rows.layout;
  const int64_t before = TokensBefore(compute).all;
  RETURN_IF_ERROR(CheckChunk(compute));
  RETURN_IF_ERROR(CheckTablePositions(compute.layout, before, *patches));
  compute.layout = WithRowsBefore(rows.layout, patches->prefix_tokens());
  if (patches->positions > 0) {
    for (int32_t& position : rows.layout.positions) {
      position += static_cast<int32_t>(before);
    }
  }
  compute.input = std::move(rows);
  if (compute.layout.rows > fields.max_tokens) {
    return InvalidField(
        "features",
        absl::StrCat("at most ", fields.max_tokens, " tokens (", fields.limit, "), including ",
                     patches->prefix_tokens(), " prefix tokens before each sequence"),
        absl::StrCat(compute.layout.rows));
  }
  return absl::OkStatus();
}

absl::Status ParseInput(const Request& request, const RequestPayloads& payloads,
                        const TokenFields& fields, const ServiceContext& context,
                        ComputeRequest& compute) {
  const bool has_texts = HasTexts(payloads);
  const int inputs = static_cast<int>(request.has_hidden_states()) +
                     static_cast<int>(request.has_token_ids()) +
                     static_cast<int>(request.has_features()) + static_cast<int>(has_texts);
  if (inputs != 1) {
    return InvalidField("hidden_states",
                        "exactly one of hidden_states, token_ids, features and texts",
                        absl::StrCat(inputs));
  }
  if (has_texts) return ParseTexts(request, payloads, context, compute);
  RETURN_IF_ERROR(CheckNoTextFields(request, payloads));
  if (request.has_token_ids()) {
    return ParseTokenIds(request, payloads, fields, compute);
  }
  if (request.has_token_type_ids()) {
    return MissingFor("token_type_ids", "token_ids");
  }
  if (request.has_position_ids()) {
    return MissingFor("position_ids", "token_ids");
  }
  RETURN_IF_ERROR(ParseTruncation(request, compute));
  if (request.has_features()) {
    if (!request.prompt_tokens().empty()) return CannotCombine("prompt_tokens", "features");
    return ParseFeatures(payloads.Of("features", request.features(), Request::kFeaturesFieldNumber),
                         fields, compute);
  }
  RETURN_IF_ERROR(ParseRows(
      payloads.Of("hidden_states", request.hidden_states(), Request::kHiddenStatesFieldNumber),
      compute.description().layer.hidden_size, fields, compute));
  return ParsePromptTokens(request, compute);
}

}  // namespace

absl::Status ParseOwnFields(const Request& request, const RequestPayloads& payloads,
                            const TokenFields& fields, const ServiceContext& context,
                            ComputeRequest& compute) {
  RETURN_IF_ERROR(ParseSpan(request, compute));
  RETURN_IF_ERROR(CheckTakesChunks(request, compute));
  RETURN_IF_ERROR(ParseOutputs(request, payloads, compute));
  RETURN_IF_ERROR(ParseInput(request, payloads, fields, context, compute));
  return CheckChunk(compute);
}

}  // namespace attendant::server
