#include "client/proto_conversion.h"

#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

static_assert(static_cast<int>(DataType::kFloat32) == v1::FLOAT32 &&
              static_cast<int>(DataType::kUInt64) == v1::UINT64);
static_assert(static_cast<int>(AttendStage::kBlock) == v1::BLOCK);
static_assert(static_cast<int>(Pooling::kClassifier) == v1::CLASSIFIER);
static_assert(static_cast<int>(AttentionForm::kTopKeys) == v1::TOP_KEYS);
static_assert(static_cast<int>(Layout::kSequenceFirst) == v1::SEQUENCE_FIRST);

void Move(Tensor& from, v1::Tensor* to) {
  to->set_dtype(static_cast<v1::DataType>(from.dtype));
  to->mutable_shape()->Add(from.shape.begin(), from.shape.end());
  to->set_data(std::move(from.data));
}

void Move(Memory& from, v1::Memory* to) {
  Move(from.hidden_states, to->mutable_hidden_states());
  if (from.attention_mask) Move(*from.attention_mask, to->mutable_attention_mask());
  to->mutable_lengths()->Add(from.lengths.begin(), from.lengths.end());
  if (from.values) Move(*from.values, to->mutable_values());
}

v1::DataType ToProto(std::optional<DataType> dtype) {
  return dtype ? static_cast<v1::DataType>(*dtype) : v1::DATA_TYPE_UNSPECIFIED;
}

std::optional<DataType> FromProto(v1::DataType dtype) {
  const auto known = static_cast<DataType>(dtype);
  return ByteWidth(known) == 0 ? std::nullopt : std::optional(known);
}

absl::Status MoveChecked(v1::Tensor* from, const char* field, Tensor& to) {
  to.dtype = static_cast<DataType>(from->dtype());
  to.shape.assign(from->shape().begin(), from->shape().end());
  to.data = std::move(*from->mutable_data());
  const absl::Status status = Validate(to);
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("the server's response has an invalid ", field, ": ", status.message()));
}

absl::Status MoveChecked(google::protobuf::RepeatedPtrField<v1::LayerTensor>* from,
                         const char* field, std::vector<LayerTensor>& to) {
  for (v1::LayerTensor& item : *from) {
    LayerTensor& added = to.emplace_back();
    added.layer = item.layer();
    absl::Status status = MoveChecked(item.mutable_tensor(), field, added.tensor);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckSparse(const SparseVectors& vectors) {
  int64_t sum = 0;
  for (const int64_t count : vectors.counts) {
    if (count < 0 || __builtin_add_overflow(sum, count, &sum)) {
      return absl::InvalidArgumentError("counts that are negative or overflow");
    }
  }
  const std::vector<int64_t> shape = {sum};
  if (vectors.indices.dtype != DataType::kInt32 || !IsFloat(vectors.weights.dtype) ||
      vectors.indices.shape != shape || vectors.weights.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected int32 indices and float weights, as many as the counts sum up to: ", sum));
  }
  const absl::StatusOr<std::vector<int64_t>> indices = ToInt64s(vectors.indices);
  if (!indices.ok()) return indices.status();
  auto next = indices->begin();
  for (const int64_t count : vectors.counts) {
    int64_t before = -1;
    for (const auto end = next + count; next != end; before = *next++) {
      if (*next <= before) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected non-negative, ascending indices in each vector; got ", *next,
                         " after ", before));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MoveChecked(v1::SparseVectors* from, SparseVectors& to) {
  to.counts.assign(from->counts().begin(), from->counts().end());
  absl::Status status = MoveChecked(from->mutable_indices(), "sparse.indices", to.indices);
  if (status.ok()) status = MoveChecked(from->mutable_weights(), "sparse.weights", to.weights);
  if (!status.ok()) return status;
  status = CheckSparse(to);
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("the server's response has an invalid sparse: ", status.message()));
}

absl::Status MoveChecked(v1::TextTokens* from, TextTokens& to) {
  const std::tuple<const google::protobuf::RepeatedField<uint32_t>&, std::vector<uint32_t>&>
      lists[] = {{from->ids(), to.ids},
                 {from->token_type_ids(), to.token_type_ids},
                 {from->sources(), to.sources},
                 {from->begins(), to.begins},
                 {from->ends(), to.ends},
                 {from->byte_begins(), to.byte_begins},
                 {from->byte_ends(), to.byte_ends}};
  for (const auto& [list, copy] : lists) {
    copy.assign(list.begin(), list.end());
    if (copy.size() != to.ids.size() || from->tokens_size() != from->ids_size()) {
      return absl::InternalError(
          "the server's response has an invalid tokens: lists of two lengths");
    }
  }
  to.tokens.assign(std::make_move_iterator(from->mutable_tokens()->begin()),
                   std::make_move_iterator(from->mutable_tokens()->end()));
  to.truncated = from->truncated();
  return absl::OkStatus();
}

absl::Status MoveChecked(google::protobuf::RepeatedPtrField<v1::TextTokens>* from,
                         std::vector<TextTokens>& to) {
  for (v1::TextTokens& item : *from) {
    absl::Status status = MoveChecked(&item, to.emplace_back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Sets the fields that EncodeRequest and TokenizeRequest have in common.
template <typename Request, typename Proto>
void SetTexts(Request& request, Proto& proto) {
  for (std::string& text : request.texts) proto.add_texts(std::move(text));
  for (std::string& text : request.text_pairs) proto.add_text_pairs(std::move(text));
  if (request.prompt) proto.set_prompt(*std::move(request.prompt));
  proto.set_prompt_name(std::move(request.prompt_name));
  proto.set_truncation(static_cast<v1::Truncation>(request.truncation));
}

// Sets the fields that AttendRequest and EncodeRequest have in common.
template <typename Request, typename Proto>
void SetAttention(const Request& request, Proto& proto) {
  proto.mutable_head_gates()->Add(request.head_gates.begin(), request.head_gates.end());
  proto.mutable_query_rows()->Add(request.query_rows.begin(), request.query_rows.end());
  proto.set_attention_form(static_cast<v1::AttentionForm>(request.attention_form));
  proto.set_attention_top_k(request.attention_top_k);
}

absl::StatusCode ToCode(int code) {
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
}

}  // namespace

v1::AttendRequest ToProto(AttendRequest request) {
  v1::AttendRequest proto;
  proto.set_model(std::move(request.model));
  proto.set_layer(request.layer);
  proto.set_stage(static_cast<v1::AttendStage>(request.stage));
  proto.set_layout(static_cast<v1::Layout>(request.layout));
  Move(request.hidden_states, proto.mutable_hidden_states());
  if (request.attention_mask) Move(*request.attention_mask, proto.mutable_attention_mask());
  proto.mutable_lengths()->Add(request.lengths.begin(), request.lengths.end());
  if (request.attention_bias) Move(*request.attention_bias, proto.mutable_attention_bias());
  proto.set_return_attention_probabilities(request.return_attention_probabilities);
  proto.set_return_weighted_values(request.return_weighted_values);
  SetAttention(request, proto);
  proto.set_output_dtype(ToProto(request.output_dtype));
  proto.set_request_id(std::move(request.request_id));
  if (request.memory) Move(*request.memory, proto.mutable_memory());
  proto.set_memory_handle(std::move(request.memory_handle));
  return proto;
}

v1::PutMemoryRequest ToProto(PutMemoryRequest request) {
  v1::PutMemoryRequest proto;
  proto.set_model(std::move(request.model));
  proto.set_layer(request.layer);
  proto.set_layout(static_cast<v1::Layout>(request.layout));
  Move(request.memory, proto.mutable_memory());
  // Rounded up: 0 would mean as long as possible.
  proto.set_time_to_live_ms(
      absl::ToInt64Milliseconds(absl::Ceil(request.time_to_live, absl::Milliseconds(1))));
  proto.set_request_id(std::move(request.request_id));
  return proto;
}

v1::EncodeRequest ToProto(EncodeRequest request) {
  v1::EncodeRequest proto;
  proto.set_model(std::move(request.model));
  if (request.layers) {
    proto.mutable_layers()->set_first(request.layers->first);
    proto.mutable_layers()->set_count(request.layers->count);
  }
  proto.set_layout(static_cast<v1::Layout>(request.layout));
  if (request.hidden_states) Move(*request.hidden_states, proto.mutable_hidden_states());
  if (request.token_ids) Move(*request.token_ids, proto.mutable_token_ids());
  if (request.features) Move(*request.features, proto.mutable_features());
  if (request.token_type_ids) Move(*request.token_type_ids, proto.mutable_token_type_ids());
  if (request.position_ids) Move(*request.position_ids, proto.mutable_position_ids());
  if (request.attention_mask) Move(*request.attention_mask, proto.mutable_attention_mask());
  proto.mutable_lengths()->Add(request.lengths.begin(), request.lengths.end());
  if (request.attention_bias) Move(*request.attention_bias, proto.mutable_attention_bias());
  SetTexts(request, proto);
  proto.set_return_tokens(request.return_tokens);
  proto.set_omit_hidden_states(request.omit_hidden_states);
  proto.mutable_intermediate_layers()->Add(request.intermediate_layers.begin(),
                                           request.intermediate_layers.end());
  proto.mutable_attention_layers()->Add(request.attention_layers.begin(),
                                        request.attention_layers.end());
  SetAttention(request, proto);
  proto.set_return_pooled(request.return_pooled);
  proto.set_pooling(static_cast<v1::Pooling>(request.pooling));
  proto.set_normalize_pooled(request.normalize_pooled);
  proto.mutable_prompt_tokens()->Add(request.prompt_tokens.begin(), request.prompt_tokens.end());
  proto.set_task(std::move(request.task));
  proto.set_return_token_vectors(request.return_token_vectors);
  proto.set_normalize_token_vectors(request.normalize_token_vectors);
  if (request.query_vectors) Move(*request.query_vectors, proto.mutable_query_vectors());
  proto.set_return_sparse(request.return_sparse);
  proto.set_output_dtype(ToProto(request.output_dtype));
  proto.set_request_id(std::move(request.request_id));
  return proto;
}

v1::TokenizeRequest ToProto(TokenizeRequest request) {
  v1::TokenizeRequest proto;
  proto.set_model(std::move(request.model));
  SetTexts(request, proto);
  proto.set_omit_special_tokens(request.omit_special_tokens);
  return proto;
}

Execution FromProto(const v1::Execution& execution) {
  return {
      .queue = absl::Nanoseconds(execution.queue_ns()),
      .copy = absl::Nanoseconds(execution.copy_ns()),
      .compute = absl::Nanoseconds(execution.compute_ns()),
      .tokenize = absl::Nanoseconds(execution.tokenize_ns()),
      .tokens = execution.tokens(),
      .truncated_tokens = execution.truncated_tokens(),
      .batch_tokens = execution.batch_tokens(),
      .batch_requests = execution.batch_requests(),
      .compute_dtype = FromProto(execution.compute_dtype()),
      .compute_type = execution.compute_type(),
      .model_version = execution.model_version(),
      .cached_sequences = execution.cached_sequences(),
  };
}

absl::StatusOr<AttendResult> FromProto(v1::AttendResponse response) {
  AttendResult result;
  absl::Status status = MoveChecked(response.mutable_output(), "output", result.output);
  const auto move = [&](const char* field, v1::Tensor* from, std::optional<Tensor>& to) {
    status.Update(MoveChecked(from, field, to.emplace()));
  };
  if (response.has_attention_probabilities()) {
    move("attention_probabilities", response.mutable_attention_probabilities(),
         result.attention_probabilities);
  }
  if (response.has_attention_keys()) {
    move("attention_keys", response.mutable_attention_keys(), result.attention_keys);
  }
  if (response.has_weighted_values()) {
    move("weighted_values", response.mutable_weighted_values(), result.weighted_values);
  }
  if (!status.ok()) return status;
  result.execution = FromProto(response.execution());
  return result;
}

absl::StatusOr<EncodeResult> FromProto(v1::EncodeResponse response) {
  EncodeResult result;
  absl::Status status;
  if (response.has_hidden_states()) {
    status.Update(MoveChecked(response.mutable_hidden_states(), "hidden_states",
                              result.hidden_states.emplace()));
  }
  if (response.has_pooled()) {
    status.Update(MoveChecked(response.mutable_pooled(), "pooled", result.pooled.emplace()));
  }
  if (response.has_token_vectors()) {
    status.Update(MoveChecked(response.mutable_token_vectors(), "token_vectors",
                              result.token_vectors.emplace()));
  }
  if (response.has_scores()) {
    status.Update(MoveChecked(response.mutable_scores(), "scores", result.scores.emplace()));
  }
  if (response.has_sparse()) {
    status.Update(MoveChecked(response.mutable_sparse(), result.sparse.emplace()));
  }
  status.Update(MoveChecked(response.mutable_intermediate(), "intermediate", result.intermediate));
  status.Update(MoveChecked(response.mutable_attention_probabilities(), "attention_probabilities",
                            result.attention_probabilities));
  status.Update(
      MoveChecked(response.mutable_attention_keys(), "attention_keys", result.attention_keys));
  status.Update(MoveChecked(response.mutable_tokens(), result.tokens));
  if (!status.ok()) return status;
  result.lengths.assign(response.lengths().begin(), response.lengths().end());
  result.execution = FromProto(response.execution());
  return result;
}

absl::StatusOr<TokenizeResult> FromProto(v1::TokenizeResponse response) {
  TokenizeResult result;
  absl::Status status = MoveChecked(response.mutable_texts(), result.texts);
  if (!status.ok()) return status;
  result.model_version = response.model_version();
  return result;
}

RegisteredMemory FromProto(v1::PutMemoryResponse response) {
  return {.handle = std::move(*response.mutable_handle()),
          .bytes = response.bytes(),
          .expires = absl::FromUnixMillis(response.expires_unix_ms()),
          .execution = FromProto(response.execution())};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(ToCode(status.error_code()), status.error_message());
}

absl::Status FromProto(const v1::Error& error) {
  return absl::Status(ToCode(error.code()), error.message());
}

}  // namespace attendant::client
