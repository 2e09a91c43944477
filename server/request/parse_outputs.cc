// The outputs that an EncodeRequest asks for.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/request/parse_fields.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using Request = v1::EncodeRequest;

// Far more than the tokens of any query.
constexpr int64_t kMostQueryVectors = 16384;

absl::StatusOr<std::vector<int64_t>> ParseLayerList(
    const char* field, const google::protobuf::RepeatedField<uint32_t>& given,
    const LayerSpan& span) {
  const int64_t last = span.first_layer + span.layers - 1;
  std::vector<bool> seen(span.layers);
  std::vector<int64_t> layers;
  for (int i = 0; i < given.size(); ++i) {
    const int64_t layer = given[i];
    const std::string element = absl::StrCat(field, "[", i, "]");
    if (layer < span.first_layer || layer > last) {
      return InvalidField(element, absl::StrCat(span.first_layer, "..", last), absl::StrCat(layer));
    }
    if (seen[layer - span.first_layer]) {
      return InvalidField(element, "each layer once", absl::StrCat(layer, " twice"));
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
      return NotSupported("pooling", "MODEL_POOLING", compute.span.model->name,
                          "its checkpoint does not define pooling; use another mode such as MEAN");
    }
  } else if (request.pooling() == v1::CLASSIFIER) {
    if (!compute.description().classifier) {
      return NotSupported("pooling", "CLASSIFIER", compute.span.model->name,
                          "it has no classification head; use another mode such as MEAN");
    }
    pooled.head = HeadKind::kClassifier;
  } else if (std::optional<PoolingMode> mode = ModeOf(request.pooling())) {
    pooled.head = HeadKind::kNone;
    pooled.mode = *mode;
  } else {
    return InvalidField("pooling", "a Pooling value",
                        absl::StrCat(static_cast<int>(request.pooling())));
  }
  compute.outputs.pooled = std::move(pooled);
  return absl::OkStatus();
}

absl::Status ParseTokenVectors(const Request& request, ComputeRequest& compute) {
  if (!request.return_token_vectors() && !request.has_query_vectors()) {
    if (request.task().empty()) return absl::OkStatus();
    return MissingFor("task", "return_token_vectors or query_vectors");
  }
  const std::optional<PoolingDescription>& head = compute.description().token_head;
  if (!head) {
    return NotSupported(request.return_token_vectors() ? "return_token_vectors" : "query_vectors",
                        "", compute.span.model->name, "it has no token head");
  }
  TokenVectorsOutput& vectors = compute.outputs.token_vectors.emplace();
  vectors.returned = request.return_token_vectors();
  vectors.normalize = request.normalize_token_vectors();
  vectors.skips_first = head->excludes_first;
  vectors.takes_mean = compute.span.model->tokenization->scores_take_mean;
  const TokenSelection& selection = compute.span.model->tokenization->selection;
  if (selection.Skips(request.task())) vectors.skipped_ids = &selection.skipped_ids;
  if (!selection.only_ids.empty() && request.task() != "query") {
    vectors.only_ids = &selection.only_ids;
  }
  return absl::OkStatus();
}

// Converts the query's vectors to float32, without the zero vectors of omitted tokens.
absl::Status ParseQueryVectors(const Request& request, const RequestPayloads& payloads,
                               ComputeRequest& compute) {
  if (!request.has_query_vectors()) return absl::OkStatus();
  const WireTensor tensor =
      payloads.Of("query_vectors", request.query_vectors(), Request::kQueryVectorsFieldNumber);
  const int64_t width = compute.token_vectors_width();
  const auto& shape = request.query_vectors().shape();
  if (shape.size() != 2 || shape[0] > kMostQueryVectors || shape[1] != width) {
    return InvalidField(
        "query_vectors.shape",
        absl::StrCat("[Q, P] with Q at most ", kMostQueryVectors, " and P = ", width),
        ShapeText({shape.data(), static_cast<size_t>(shape.size())}));
  }
  ASSIGN_OR_RETURN(const CheckedTensor checked, CheckTensor(tensor, ElementKind::kFloat));
  auto query = std::make_shared<std::vector<float>>();
  std::vector<float> row(width);
  for (int64_t r = 0; r < checked.dim(0); ++r) {
    checked.data.ReadFloats(checked.dtype, r * width, width, row.data());
    if (absl::c_all_of(row, [](float number) { return number == 0; })) continue;
    query->insert(query->end(), row.begin(), row.end());
  }
  compute.outputs.token_vectors->query = std::move(query);
  return absl::OkStatus();
}

absl::Status ParseSparse(const Request& request, ComputeRequest& compute) {
  compute.outputs.sparse = request.return_sparse();
  if (!compute.outputs.sparse || compute.description().vocabulary_head) return absl::OkStatus();
  if (!compute.description().lexical_head) {
    return NotSupported("return_sparse", "", compute.span.model->name,
                        "it has no MLM head and no lexical head");
  }
  if (request.has_hidden_states() || request.has_features()) {
    return MissingFor("return_sparse", "token_ids or texts (the model weighs token ids)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseOutputs(const Request& request, const RequestPayloads& payloads,
                          ComputeRequest& compute) {
  ASSIGN_OR_RETURN(
      compute.outputs.intermediate_layers,
      ParseLayerList("intermediate_layers", request.intermediate_layers(), compute.span));
  ASSIGN_OR_RETURN(compute.outputs.attention.layers,
                   ParseLayerList("attention_layers", request.attention_layers(), compute.span));
  compute.outputs.hidden_states = !request.omit_hidden_states();
  RETURN_IF_ERROR(ParseTokenVectors(request, compute));
  RETURN_IF_ERROR(ParseQueryVectors(request, payloads, compute));
  RETURN_IF_ERROR(ParseSparse(request, compute));
  return ParsePooling(request, compute);
}

}  // namespace attendant::server
