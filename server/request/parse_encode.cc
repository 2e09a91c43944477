#include "server/request/parse_encode.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/model/model_facts.h"
#include "server/request/shared_fields.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using Request = v1::EncodeRequest;

// Fills first_layer, layers and width.
absl::Status ParseSpan(const Request& request, ComputeRequest& compute) {
  const ModelDescription& model = compute.description();
  const LayerShape& layer = model.layer;
  if (absl::Status status = CheckNeedsNoMemory(layer); !status.ok()) return status;
  compute.layers = model.layers;
  if (request.has_layers()) {
    const int64_t first = request.layers().first();
    const int64_t count = request.layers().count();
    if (count < 1 || first + count > model.layers) {
      return Refusal("layers",
                     absl::StrCat("a span of 1 or more of the layers 0..", model.layers - 1),
                     absl::StrCat("first ", first, ", count ", count));
    }
    compute.first_layer = first;
    compute.layers = count;
  }
  compute.width = layer.layer_width();
  if (compute.width != layer.hidden_size && compute.layers > 1) {
    return Refusal("layers",
                   absl::StrCat("one layer, as the model's take ", layer.hidden_size,
                                " columns and give ", compute.width),
                   absl::StrCat(compute.layers));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ParseLayerList(
    const char* field, const google::protobuf::RepeatedField<uint32_t>& came,
    const ComputeRequest& compute) {
  const int64_t last = compute.first_layer + compute.layers - 1;
  std::vector<bool> seen(compute.layers);
  std::vector<int64_t> layers;
  for (int i = 0; i < came.size(); ++i) {
    const int64_t layer = came[i];
    const std::string element = absl::StrCat(field, "[", i, "]");
    if (layer < compute.first_layer || layer > last) {
      return Refusal(element, absl::StrCat(compute.first_layer, "..", last), absl::StrCat(layer));
    }
    if (seen[layer - compute.first_layer]) {
      return Refusal(element, "each layer once", absl::StrCat(layer, " again"));
    }
    seen[layer - compute.first_layer] = true;
    layers.push_back(layer);
  }
  return layers;
}

std::optional<PoolingMode> ModeOf(v1::Pooling pooling) {
  switch (pooling) {
    case v1::FIRST_TOKEN:
      return PoolingMode::kFirstToken;
    case v1::MEAN:
      return PoolingMode::kMean;
    case v1::MAX:
      return PoolingMode::kMax;
    case v1::MEAN_SQRT_LEN:
      return PoolingMode::kMeanSqrtLen;
    case v1::POSITION_WEIGHTED_MEAN:
      return PoolingMode::kPositionWeightedMean;
    case v1::LAST_TOKEN:
      return PoolingMode::kLastToken;
    default:
      return std::nullopt;
  }
}

absl::Status ParsePooling(const Request& request, ComputeRequest& compute) {
  if (!request.return_pooled()) return absl::OkStatus();
  PooledOutput pooled{.normalize = request.normalize_pooled(), .width = compute.width};
  if (request.pooling() == v1::MODEL_POOLING) {
    const auto& described = compute.description().pooling;
    if (!described) {
      return Refusal("pooling", "a mode, as the model's checkpoint says nothing about pooling",
                     "MODEL_POOLING");
    }
    pooled.width = described->width(compute.width);
  } else if (request.pooling() == v1::CLASSIFIER) {
    const auto& described = compute.description().classifier;
    if (!described) {
      return Refusal("pooling", "another one, as the model's checkpoint has no classification head",
                     "CLASSIFIER");
    }
    pooled.classifies = true;
    pooled.width = described->width(compute.width);
  } else if (std::optional<PoolingMode> mode = ModeOf(request.pooling())) {
    pooled.modes = {*mode};
  } else {
    return Refusal("pooling", "a Pooling value", absl::StrCat(static_cast<int>(request.pooling())));
  }
  compute.pooled = std::move(pooled);
  return absl::OkStatus();
}

absl::Status ParseOutputs(const Request& request, ComputeRequest& compute) {
  auto intermediate = ParseLayerList("intermediate_layers", request.intermediate_layers(), compute);
  if (!intermediate.ok()) return intermediate.status();
  auto attention = ParseLayerList("attention_layers", request.attention_layers(), compute);
  if (!attention.ok()) return attention.status();
  compute.wants_hidden_states = !request.omit_hidden_states();
  compute.intermediate_layers = *std::move(intermediate);
  compute.attention.layers = *std::move(attention);
  return ParsePooling(request, compute);
}

absl::StatusOr<std::optional<CheckedTensor>> ParseBesideIds(const WireTensor& tensor, bool present,
                                                           const CheckedTensor& token_ids) {
  if (!present) return std::optional<CheckedTensor>();
  absl::Status status = CheckShape(tensor, token_ids.shape, "that of token_ids, ");
  if (!status.ok()) return status;
  absl::StatusOr<CheckedTensor> checked = CheckTensor(tensor, ElementKind::kInteger);
  if (!checked.ok()) return checked.status();
  return std::optional<CheckedTensor>(*std::move(checked));
}

// Cuts the layout as the request asks.
absl::Status ParseTruncation(const Request& request, ComputeRequest& compute) {
  if (request.truncation() == v1::NO_TRUNCATION) return absl::OkStatus();
  if (!v1::Truncation_IsValid(request.truncation())) {
    return Refusal("truncation", "a Truncation value",
                   absl::StrCat(static_cast<int>(request.truncation())));
  }
  if (!request.has_token_ids() || request.has_position_ids()) {
    return Refusal("truncation", "none but with token_ids at their default positions",
                   v1::Truncation_Name(request.truncation()));
  }
  const TruncationSide side =
      request.truncation() == v1::TRUNCATE_LEFT ? TruncationSide::kLeft : TruncationSide::kRight;
  TokenLayout kept = Truncate(compute.layout, *compute.description().embeddings, side);
  compute.truncated_tokens = compute.layout.tokens() - kept.tokens();
  compute.layout = std::move(kept);
  return absl::OkStatus();
}

// Of the sequence that the request is a part of.
int64_t TokensBefore(const ValidationContext& context) {
  return context.sequence == nullptr ? 0 : context.sequence->tokens();
}

// Whether the model can take sequences in parts; layers are there.
absl::Status CheckModelOfParts(const Request& request, const ValidationContext& context,
                               const ComputeRequest& compute) {
  if (context.sequence == nullptr) return absl::OkStatus();
  if (const std::string why = WhyNotInParts(compute.description()); !why.empty()) {
    return Refusal("sequence", absl::StrCat("0, as the model takes none in parts: ", why),
                   absl::StrCat(context.sequence->number()));
  }
  if (request.truncation() == v1::NO_TRUNCATION || !v1::Truncation_IsValid(request.truncation())) {
    return absl::OkStatus();
  }
  return Refusal("truncation", "none of a sequence that comes in parts",
                 v1::Truncation_Name(request.truncation()));
}

// Whether the layout is that of a part.
absl::Status CheckPart(const ValidationContext& context, const ComputeRequest& compute) {
  const TokenLayout& layout = compute.layout;
  if (context.sequence == nullptr || (layout.sequences == 1 && layout.leading)) {
    return absl::OkStatus();
  }
  return Refusal("sequence", "one sequence that keeps its first tokens in a part",
                 layout.sequences == 1 ? "padding before a token"
                                       : absl::StrCat(layout.sequences, " sequences"));
}

// Fills layout and input.
absl::Status ParseTokenIds(const Request& request, const RequestPayloads& payloads,
                          const SharedTensors& shared, const ValidationContext& context,
                          ComputeRequest& compute) {
  if (!compute.description().embeddings) {
    return Refusal("token_ids", "none, as the model has no embeddings", "a tensor");
  }
  if (compute.first_layer != 0) {
    return Refusal("layers.first", "0 with token_ids", absl::StrCat(compute.first_layer));
  }
  const WireTensor words =
      payloads.Of("token_ids", request.token_ids(), Request::kTokenIdsFieldNumber);
  const auto& dims = request.token_ids().shape();
  if (dims.size() != 2 && dims.size() != 1) {
    return Refusal("token_ids.shape",
                   shared.sequence_first ? "[S, B]" : "[B, S], or [T] with lengths",
                   ShapeText({dims.data(), static_cast<size_t>(dims.size())}));
  }
  absl::StatusOr<CheckedTensor> token_ids = CheckTensor(words, ElementKind::kInteger);
  if (!token_ids.ok()) return token_ids.status();
  auto types = ParseBesideIds(
      payloads.Of("token_type_ids", request.token_type_ids(), Request::kTokenTypeIdsFieldNumber),
      request.has_token_type_ids(), *token_ids);
  if (!types.ok()) return types.status();
  auto positions = ParseBesideIds(
      payloads.Of("position_ids", request.position_ids(), Request::kPositionIdsFieldNumber),
      request.has_position_ids(), *token_ids);
  if (!positions.ok()) return positions.status();
  auto layout = LayOutTokens({"token_ids", token_ids->shape, shared.lengths, shared.attention_mask,
                              shared.scope, shared.sequence_first},
                             context.limits.max_request_tokens);
  if (!layout.ok()) return layout.status();
  compute.layout = *std::move(layout);
  if (absl::Status status = ParseTruncation(request, compute); !status.ok()) return status;
  auto kept = ReadKeptIds({*std::move(token_ids), *std::move(types), *std::move(positions)},
                          *compute.description().embeddings, compute.layout, TokensBefore(context));
  if (!kept.ok()) return kept.status();
  compute.input = *std::move(kept);
  return absl::OkStatus();
}

// Rows of which only some have a place in the model's table of positions, behind those of
// `tokens_before`.
absl::Status CheckPlaces(const TokenLayout& layout, int64_t tokens_before,
                         const PatchEmbeddingShape& front) {
  const int64_t places = front.features();
  if (places == 0) return absl::OkStatus();
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const int64_t rows = tokens_before + (layout.packed ? layout.length(b) : layout.padded_length);
    if (rows == places || rows == 0 || (rows < places && !front.needs_every)) continue;
    return Refusal("features",
                   absl::StrCat(front.needs_every ? "" : "at most ", places,
                                " rows in a sequence, one for each position of the model"),
                   absl::StrCat(rows, " in sequence ", b));
  }
  return absl::OkStatus();
}

// Fills layout, input and features.
absl::Status ParseFeatures(const WireTensor& tensor, const SharedTensors& shared,
                          const ValidationContext& context, ComputeRequest& compute) {
  const int64_t max_tokens = context.limits.max_request_tokens;
  const std::optional<PatchEmbeddingShape>& front = compute.description().patch_embedding;
  if (!front) {
    return Refusal("features", "none, as the model has nothing to put before or onto them",
                   "a tensor");
  }
  if (compute.first_layer != 0) {
    return Refusal("layers.first", "0 with features", absl::StrCat(compute.first_layer));
  }
  absl::Status status = ParseRows(tensor, front->width(compute.description().layer.hidden_size),
                                 shared, max_tokens, compute);
  if (status.ok()) status = CheckPart(context, compute);
  if (status.ok()) status = CheckPlaces(compute.layout, TokensBefore(context), *front);
  if (!status.ok()) return status;
  compute.features = std::move(compute.layout);
  compute.layout = WithRowsBefore(*compute.features, front->prefix_tokens());
  if (front->positions > 0) {
    for (int32_t& position : compute.features->positions) {
      position += static_cast<int32_t>(TokensBefore(context));
    }
  }
  if (compute.layout.rows > max_tokens) {
    return Refusal("features",
                   absl::StrCat("at most ", max_tokens, " tokens with the ", front->prefix_tokens(),
                                " rows of the model before each sequence"),
                   absl::StrCat(compute.layout.rows));
  }
  return absl::OkStatus();
}

absl::Status ParseInput(const Request& request, const RequestPayloads& payloads,
                       const SharedTensors& shared, const ValidationContext& context,
                       ComputeRequest& compute) {
  const int inputs = static_cast<int>(request.has_hidden_states()) +
                     static_cast<int>(request.has_token_ids()) +
                     static_cast<int>(request.has_features());
  if (inputs != 1) {
    return Refusal("hidden_states", "exactly one of it, token_ids and features",
                   absl::StrCat(inputs));
  }
  if (request.has_token_ids()) {
    return ParseTokenIds(request, payloads, shared, context, compute);
  }
  if (request.has_token_type_ids()) {
    return Refusal("token_type_ids", "none without token_ids", "a tensor");
  }
  if (request.has_position_ids()) {
    return Refusal("position_ids", "none without token_ids", "a tensor");
  }
  if (absl::Status status = ParseTruncation(request, compute); !status.ok()) return status;
  if (request.has_features()) {
    return ParseFeatures(payloads.Of("features", request.features(), Request::kFeaturesFieldNumber),
                        shared, context, compute);
  }
  return ParseRows(
      payloads.Of("hidden_states", request.hidden_states(), Request::kHiddenStatesFieldNumber),
      compute.description().layer.hidden_size, shared, context.limits.max_request_tokens, compute);
}

}  // namespace

absl::Status ParseOwnFields(const Request& request, const RequestPayloads& payloads,
                           const SharedTensors& shared, const ValidationContext& context,
                           ComputeRequest& compute) {
  absl::Status status = ParseSpan(request, compute);
  if (status.ok()) status = CheckModelOfParts(request, context, compute);
  if (status.ok()) status = ParseOutputs(request, compute);
  if (status.ok()) status = ParseInput(request, payloads, shared, context, compute);
  if (status.ok()) status = CheckPart(context, compute);
  return status;
}

}  // namespace attendant::server
