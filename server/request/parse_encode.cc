#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/model/model_facts.h"
#include "server/request/parse_own_fields.h"
#include "server/request/parse_texts.h"
#include "server/request/shared_fields.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using Request = v1::EncodeRequest;

// Fills the layers of the span.
absl::Status ParseSpan(const Request& request, ComputeRequest& compute) {
  const ModelDescription& model = compute.description();
  const LayerShape& layer = model.layer;
  if (absl::Status status = CheckNeedsNoCrossKv(layer); !status.ok()) return status;
  compute.span.layers = model.layers;
  if (request.has_layers()) {
    const int64_t first = request.layers().first();
    const int64_t count = request.layers().count();
    if (model.layers == 0) {
      return InvalidField("layers", "none, as the model has embeddings alone",
                          absl::StrCat("first ", first, ", count ", count));
    }
    if (count < 1 || first + count > model.layers) {
      return InvalidField("layers",
                          absl::StrCat("a span of 1 or more of the layers 0..", model.layers - 1),
                          absl::StrCat("first ", first, ", count ", count));
    }
    compute.span.first_layer = first;
    compute.span.layers = count;
  }
  if (compute.width() != layer.hidden_size && compute.span.layers > 1) {
    return InvalidField("layers",
                        absl::StrCat("one layer, as the model's take ", layer.hidden_size,
                                     " columns and give ", compute.width()),
                        absl::StrCat(compute.span.layers));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ParseLayerList(
    const char* field, const google::protobuf::RepeatedField<uint32_t>& came,
    const LayerSpan& span) {
  const int64_t last = span.first_layer + span.layers - 1;
  std::vector<bool> seen(span.layers);
  std::vector<int64_t> layers;
  for (int i = 0; i < came.size(); ++i) {
    const int64_t layer = came[i];
    const std::string element = absl::StrCat(field, "[", i, "]");
    if (layer < span.first_layer || layer > last) {
      return InvalidField(element, absl::StrCat(span.first_layer, "..", last), absl::StrCat(layer));
    }
    if (seen[layer - span.first_layer]) {
      return InvalidField(element, "each layer once", absl::StrCat(layer, " again"));
    }
    seen[layer - span.first_layer] = true;
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
  PooledOutput pooled{.normalize = request.normalize_pooled()};
  if (request.pooling() == v1::MODEL_POOLING) {
    if (!compute.description().pooling) {
      return InvalidField("pooling", "a mode, as the model's checkpoint says nothing about pooling",
                          "MODEL_POOLING");
    }
  } else if (request.pooling() == v1::CLASSIFIER) {
    if (!compute.description().classifier) {
      return InvalidField("pooling",
                          "another one, as the model's checkpoint has no classification head",
                          "CLASSIFIER");
    }
    pooled.pooling = ClassifierPooling();
  } else if (std::optional<PoolingMode> mode = ModeOf(request.pooling())) {
    pooled.pooling = *mode;
  } else {
    return InvalidField("pooling", "a Pooling value",
                        absl::StrCat(static_cast<int>(request.pooling())));
  }
  compute.outputs.pooled = std::move(pooled);
  return absl::OkStatus();
}

absl::Status ParseTokenVectors(const Request& request, ComputeRequest& compute) {
  if (!request.return_token_vectors()) {
    if (request.task().empty()) return absl::OkStatus();
    return InvalidField("task", "none without return_token_vectors", Quote(request.task()));
  }
  if (!compute.description().token_head) {
    return InvalidField("return_token_vectors",
                        "false, as the model's checkpoint has no token head", "true");
  }
  TokenVectorsOutput& vectors = compute.outputs.token_vectors.emplace();
  vectors.normalize = request.normalize_token_vectors();
  const TokenSelection& selection = compute.span.model->tokenization->selection;
  if (selection.Skips(request.task())) vectors.skipped_ids = &selection.skipped_ids;
  if (!selection.only_ids.empty() && request.task() != "query") {
    vectors.only_ids = &selection.only_ids;
  }
  return absl::OkStatus();
}

absl::Status ParseSparse(const Request& request, ComputeRequest& compute) {
  compute.outputs.sparse = request.return_sparse();
  if (!compute.outputs.sparse || compute.description().vocabulary_head) return absl::OkStatus();
  return InvalidField("return_sparse",
                      "false, as the model's checkpoint has no head of a masked language model",
                      "true");
}

absl::Status ParseOutputs(const Request& request, ComputeRequest& compute) {
  auto intermediate =
      ParseLayerList("intermediate_layers", request.intermediate_layers(), compute.span);
  if (!intermediate.ok()) return intermediate.status();
  auto attention = ParseLayerList("attention_layers", request.attention_layers(), compute.span);
  if (!attention.ok()) return attention.status();
  if (!request.omit_hidden_states()) compute.outputs.hidden_states.emplace();
  compute.outputs.intermediate_layers = *std::move(intermediate);
  compute.outputs.attention.layers = *std::move(attention);
  if (absl::Status status = ParseTokenVectors(request, compute); !status.ok()) return status;
  if (absl::Status status = ParseSparse(request, compute); !status.ok()) return status;
  return ParsePooling(request, compute);
}

// Fills the tokens of prompts that are not pooled, in the layout that is there.
absl::Status ParsePromptTokens(const Request& request, ComputeRequest& compute) {
  const auto& counts = request.prompt_tokens();
  if (counts.empty()) return absl::OkStatus();
  const TokenLayout& layout = compute.layout;
  if (!request.return_pooled() || request.pooling() == v1::CLASSIFIER) {
    return InvalidField("prompt_tokens", "none without a pooled vector other than CLASSIFIER",
                        absl::StrCat(counts.size(), " numbers"));
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
    return InvalidField("truncation", "a Truncation value",
                        absl::StrCat(static_cast<int>(request.truncation())));
  }
  if (!request.has_token_ids() || request.has_position_ids()) {
    return InvalidField("truncation", "none but with token_ids at their default positions",
                        v1::Truncation_Name(request.truncation()));
  }
  const TruncationSide side =
      request.truncation() == v1::TRUNCATE_LEFT ? TruncationSide::kLeft : TruncationSide::kRight;
  const EmbeddingShape& embeddings = *compute.description().embeddings;
  const int64_t max_length = MaxSequenceLength(embeddings, *compute.span.model->tokenization);
  TokenLayout kept = Truncate(compute.layout, embeddings, max_length, side);
  if (compute.outputs.pooled && side == TruncationSide::kLeft) {
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

// Tokens of the sequence that the request is a chunk of; 0: it is none.
ChunkTokens TokensBefore(const ComputeRequest& compute) {
  return compute.sequence() == nullptr ? ChunkTokens() : compute.sequence()->tokens();
}

// Checks that the model can take sequences in chunks. The layers are there.
absl::Status CheckTakesChunks(const Request& request, const ComputeRequest& compute) {
  if (compute.sequence() == nullptr) return absl::OkStatus();
  if (const std::string why = WhyNotInChunks(compute.description()); !why.empty()) {
    return InvalidField("sequence", absl::StrCat("0, as the model takes none in parts: ", why),
                        absl::StrCat(compute.sequence()->number()));
  }
  if (request.truncation() == v1::NO_TRUNCATION || !v1::Truncation_IsValid(request.truncation())) {
    return absl::OkStatus();
  }
  return InvalidField("truncation", "none of a sequence that comes in parts",
                      v1::Truncation_Name(request.truncation()));
}

// Checks that the layout is that of a chunk.
absl::Status CheckChunk(const ComputeRequest& compute) {
  const TokenLayout& layout = compute.layout;
  if (compute.sequence() == nullptr || (layout.sequences == 1 && layout.leading)) {
    return absl::OkStatus();
  }
  return InvalidField("sequence", "one sequence that keeps its first tokens in a part",
                      layout.sequences == 1 ? "padding before a token"
                                            : absl::StrCat(layout.sequences, " sequences"));
}

// Fills layout and input.
absl::Status ParseTokenIds(const Request& request, const RequestPayloads& payloads,
                           const SharedTensors& shared, const ServiceContext& context,
                           ComputeRequest& compute) {
  if (!compute.description().embeddings) {
    return InvalidField("token_ids", "none, as the model has no embeddings", "a tensor");
  }
  if (compute.span.first_layer != 0) {
    return InvalidField("layers.first", "0 with token_ids", absl::StrCat(compute.span.first_layer));
  }
  const WireTensor words =
      payloads.Of("token_ids", request.token_ids(), Request::kTokenIdsFieldNumber);
  const auto& dims = request.token_ids().shape();
  if (dims.size() != 2 && dims.size() != 1) {
    return InvalidField("token_ids.shape",
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
  compute.layout = *layout;
  absl::Status status = ParsePromptTokens(request, compute);
  if (status.ok()) status = ParseTruncation(request, compute);
  if (!status.ok()) return status;
  auto kept = ReadKeptIds({*std::move(token_ids), *std::move(types), *std::move(positions)},
                          *compute.description().embeddings,
                          {compute.layout, *layout, TokensBefore(compute).counted});
  if (!kept.ok()) return kept.status();
  compute.input = *std::move(kept);
  return absl::OkStatus();
}

// Checks that every row has a position in the model's table, where those of `tokens_before` come
// first.
absl::Status CheckTablePositions(const TokenLayout& layout, int64_t tokens_before,
                                 const PatchEmbeddingShape& patches) {
  const int64_t positions = patches.features();
  if (positions == 0) return absl::OkStatus();
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const int64_t rows = tokens_before + (layout.packed ? layout.length(b) : layout.padded_length);
    if (rows == positions || rows == 0 || (rows < positions && !patches.needs_every)) continue;
    return InvalidField("features",
                        absl::StrCat(patches.needs_every ? "" : "at most ", positions,
                                     " rows in a sequence, one for each position of the model"),
                        absl::StrCat(rows, " in sequence ", b));
  }
  return absl::OkStatus();
}

// Fills layout and input.
absl::Status ParseFeatures(const WireTensor& tensor, const SharedTensors& shared,
                           const ServiceContext& context, ComputeRequest& compute) {
  const int64_t max_tokens = context.limits.max_request_tokens;
  const std::optional<PatchEmbeddingShape>& patches = compute.description().patch_embedding;
  if (!patches) {
    return InvalidField("features", "none, as the model puts nothing before or onto them", "some");
  }
  if (compute.span.first_layer != 0) {
    return InvalidField("layers.first", "0 with features", absl::StrCat(compute.span.first_layer));
  }
  const bool are_pixels = patches->patch_size > 0 && tensor.head.shape_size() == 4;
  absl::StatusOr<TokenRows> rows =
      are_pixels ? CheckPixels(tensor, *patches, shared, max_tokens)
                 : CheckTokenRows(tensor, patches->width(compute.description().layer.hidden_size),
                                  shared, max_tokens);
  if (!rows.ok()) return rows.status();
  compute.layout = std::move(rows->layout);
  const int64_t before = TokensBefore(compute).all;
  absl::Status status = CheckChunk(compute);
  if (status.ok()) status = CheckTablePositions(compute.layout, before, *patches);
  if (!status.ok()) return status;
  FeatureRows features{std::move(rows->tensor), std::move(compute.layout), are_pixels};
  compute.layout = WithRowsBefore(features.layout, patches->prefix_tokens());
  if (patches->positions > 0) {
    for (int32_t& position : features.layout.positions) {
      position += static_cast<int32_t>(before);
    }
  }
  compute.input = std::move(features);
  if (compute.layout.rows > max_tokens) {
    return InvalidField(
        "features",
        absl::StrCat("at most ", max_tokens, " tokens with the ", patches->prefix_tokens(),
                     " rows of the model before each sequence"),
        absl::StrCat(compute.layout.rows));
  }
  return absl::OkStatus();
}

absl::Status ParseInput(const Request& request, const RequestPayloads& payloads,
                        const SharedTensors& shared, const ServiceContext& context,
                        ComputeRequest& compute) {
  const bool has_texts = HasTexts(payloads);
  const int inputs = static_cast<int>(request.has_hidden_states()) +
                     static_cast<int>(request.has_token_ids()) +
                     static_cast<int>(request.has_features()) + static_cast<int>(has_texts);
  if (inputs != 1) {
    return InvalidField("hidden_states", "exactly one of it, token_ids, features and texts",
                        absl::StrCat(inputs));
  }
  if (has_texts) return ParseTexts(request, payloads, context, compute);
  if (absl::Status status = CheckNoTextFields(request, payloads); !status.ok()) return status;
  if (request.has_token_ids()) {
    return ParseTokenIds(request, payloads, shared, context, compute);
  }
  if (request.has_token_type_ids()) {
    return InvalidField("token_type_ids", "none without token_ids", "a tensor");
  }
  if (request.has_position_ids()) {
    return InvalidField("position_ids", "none without token_ids", "a tensor");
  }
  if (absl::Status status = ParseTruncation(request, compute); !status.ok()) return status;
  if (request.has_features()) {
    if (!request.prompt_tokens().empty()) {
      return InvalidField("prompt_tokens", "none with features",
                          absl::StrCat(request.prompt_tokens_size(), " numbers"));
    }
    return ParseFeatures(payloads.Of("features", request.features(), Request::kFeaturesFieldNumber),
                         shared, context, compute);
  }
  absl::Status status = ParseRows(
      payloads.Of("hidden_states", request.hidden_states(), Request::kHiddenStatesFieldNumber),
      compute.description().layer.hidden_size, shared, context.limits.max_request_tokens, compute);
  return status.ok() ? ParsePromptTokens(request, compute) : status;
}

}  // namespace

absl::Status ParseOwnFields(const Request& request, const RequestPayloads& payloads,
                            const SharedTensors& shared, const ServiceContext& context,
                            ComputeRequest& compute) {
  absl::Status status = ParseSpan(request, compute);
  if (status.ok()) status = CheckTakesChunks(request, compute);
  if (status.ok()) status = ParseOutputs(request, compute);
  if (status.ok()) status = ParseInput(request, payloads, shared, context, compute);
  if (status.ok()) status = CheckChunk(compute);
  return status;
}

}  // namespace attendant::server
