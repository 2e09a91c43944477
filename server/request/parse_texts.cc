#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/models/model_lookup.h"
#include "server/request/parse_fields.h"
#include "server/request/parse_request.h"
#include "server/request/tokenized_texts.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

using Request = v1::EncodeRequest;

// Refuses fields about rows or ids, which a client that sends texts does not know.
absl::Status CheckOnlyTexts(const Request& request, const ComputeRequest& compute) {
  const std::pair<const char*, bool> unfit[] = {
      {"token_type_ids", request.has_token_type_ids()},
      {"position_ids", request.has_position_ids()},
      {"attention_mask", request.has_attention_mask()},
      {"lengths", request.lengths_size() > 0},
      {"prompt_tokens", request.prompt_tokens_size() > 0},
      {"layout", request.layout() != v1::BATCH_FIRST},
  };
  for (const auto& [field, is_there] : unfit) {
    if (is_there) return CannotCombine(field, "texts");
  }
  if (compute.sequence() != nullptr) {
    return CannotCombine("sequence", "texts");
  }
  if (compute.span.first_layer == 0) return absl::OkStatus();
  return InvalidField("layers.first", "0 with texts", absl::StrCat(compute.span.first_layer));
}

TextFields FieldsOf(const Request& request, const RequestPayloads& payloads,
                    const ServiceContext& context) {
  TextFields fields = ReadTextFields(request, payloads);
  fields.task = request.task();
  fields.places = request.return_tokens();
  fields.most_tokens = context.limits.max_request_tokens;
  return fields;
}

// The tensor, [T] or [B, S], of one list of all texts.
CheckedTensor TensorOf(const TokenizedTexts& tokenized, std::vector<uint32_t> text::Encoding::*list,
                       const TokenLayout& layout) {
  std::vector<uint32_t> elements(static_cast<size_t>(layout.rows));
  auto row = elements.begin();
  for (const text::Encoding& encoding : tokenized.texts) {
    const std::vector<uint32_t>& ids = encoding.*list;
    std::copy(ids.begin(), ids.end(), row);
    row += layout.packed ? static_cast<int64_t>(ids.size()) : layout.padded_length;
  }
  std::vector<int64_t> shape = {layout.rows};
  if (!layout.packed) shape = {layout.sequences, layout.padded_length};
  return {DataType::kUInt32, std::move(shape),
          Payload(MessageSlices{grpc::Slice(elements.data(), elements.size() * sizeof(uint32_t))})};
}

// A bias by which no token attends to those that were added to queries, which are still computed.
CheckedTensor MaskAddedTokens(const TokenizedTexts& tokenized, const TokenLayout& layout) {
  const int64_t length = layout.padded_length;
  std::vector<float> bias(static_cast<size_t>(layout.sequences * length));
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const auto row = bias.begin() + b * length;
    std::fill(row + tokenized.attended[b], row + length, -std::numeric_limits<float>::infinity());
  }
  return {DataType::kFloat32,
          {layout.sequences, 1, 1, length},
          Payload(MessageSlices{grpc::Slice(bias.data(), bias.size() * sizeof(float))})};
}

// The vectors of added tokens count only in late interaction.
absl::Status CheckExpansion(const Request& request, const ComputeRequest& compute) {
  const std::optional<QueryExpansion>& expansion =
      compute.span.model->tokenization->query_expansion;
  if (!expansion || request.task() != "query") return absl::OkStatus();
  for (const auto& [field, wanted] : {std::pair{"return_pooled", request.return_pooled()},
                                      std::pair{"return_sparse", request.return_sparse()}}) {
    if (!wanted) continue;
    return CannotCombine(field,
                         "texts of the task \"query\" (the model adds tokens to queries); send "
                         "another request without the task");
  }
  return absl::OkStatus();
}

// Leaves the prompt's tokens out of the pooled vector if the model does so.
absl::Status ExcludePrompt(const Request& request, const TokenizedTexts& tokenized,
                           ComputeRequest& compute) {
  if (tokenized.prompt_tokens == 0 || !compute.outputs.pooled) return absl::OkStatus();
  const bool by_model = compute.outputs.pooled->head == HeadKind::kPooling &&
                        compute.description().pooling->excludes_prompt;
  if (!by_model) return absl::OkStatus();
  // A tokenizer that truncates on the left does so in sentence-transformers too, which then counts
  // the prompt's tokens all the same.
  if (request.truncation() == v1::TRUNCATE_LEFT &&
      !compute.span.model->tokenization->truncates_left) {
    return NotSupported("truncation", "TRUNCATE_LEFT", compute.span.model->name,
                        "it excludes its prompt from pooling; use TRUNCATE_RIGHT");
  }
  compute.outputs.pooled->prompt_tokens.assign(compute.layout.sequences, tokenized.prompt_tokens);
  return absl::OkStatus();
}

}  // namespace

bool HasTexts(const RequestPayloads& payloads) {
  return !payloads.AllOf(Request::kTextsFieldNumber).empty();
}

int64_t TokenizingBytes(const Request& request, const RequestPayloads& payloads,
                        const ServiceContext& context) {
  if (!HasTexts(payloads)) return 0;
  const FoundModel model = FindModel(*context.models.Snapshot(), request.model());
  if (!model.ok()) return 0;  // which ParseRequest refuses
  return TokenizingBytes(FieldsOf(request, payloads, context), **model);
}

absl::Status CheckNoTextFields(const Request& request, const RequestPayloads& payloads) {
  const std::pair<const char*, bool> unfit[] = {
      {"text_pairs", !payloads.AllOf(Request::kTextPairsFieldNumber).empty()},
      {"prompt", request.has_prompt()},
      {"prompt_name", !request.prompt_name().empty()},
      {"return_tokens", request.return_tokens()},
      {"pad_texts", request.pad_texts()},
  };
  for (const auto& [field, is_there] : unfit) {
    if (is_there) return MissingFor(field, "texts");
  }
  return absl::OkStatus();
}

absl::Status ParseTexts(const Request& request, const RequestPayloads& payloads,
                        const ServiceContext& context, ComputeRequest& compute) {
  RETURN_IF_ERROR(CheckOnlyTexts(request, compute));
  RETURN_IF_ERROR(CheckExpansion(request, compute));
  TextFields fields = FieldsOf(request, payloads, context);
  if (!compute.client.empty()) fields.cache = context.cache;
  fields.client = compute.client;
  ASSIGN_OR_RETURN(TokenizedTexts made, TokenizeTexts(fields, *compute.span.model, context.clock));
  auto tokenized = std::make_shared<const TokenizedTexts>(std::move(made));
  std::vector<int64_t> lengths;
  for (const text::Encoding& text : tokenized->texts) {
    lengths.push_back(static_cast<int64_t>(text.ids.size()));
    compute.truncated_tokens += text.truncated ? 1 : 0;
  }
  std::vector<int64_t> shape = {tokenized->tokens()};
  const bool is_empty = shape[0] == 0;
  if (is_empty && compute.description().layers > 0) {
    return InvalidField("texts", "at least 1 token in total", "0");
  }
  if (request.pad_texts() || is_empty) {
    shape = {static_cast<int64_t>(lengths.size()),
             std::max<int64_t>(1, *std::max_element(lengths.begin(), lengths.end()))};
  }
  ASSIGN_OR_RETURN(compute.layout, LayOutTokens("texts", shape,
                                                {.lengths = lengths,
                                                 .max_tokens = context.limits.max_request_tokens}));
  const EmbeddingShape& embeddings = *compute.description().embeddings;
  IdTensors ids{compute.layout, compute.layout,
                TensorOf(*tokenized, &text::Encoding::ids, compute.layout)};
  if (embeddings.token_types > 1) {
    ids.token_type_ids = TensorOf(*tokenized, &text::Encoding::type_ids, compute.layout);
  }
  ASSIGN_OR_RETURN(compute.input, ReadKeptIds(ids, embeddings));
  if (!tokenized->attended.empty()) compute.bias = MaskAddedTokens(*tokenized, compute.layout);
  compute.outputs.tokens = request.return_tokens();
  RETURN_IF_ERROR(ExcludePrompt(request, *tokenized, compute));
  compute.texts = std::move(tokenized);
  return absl::OkStatus();
}

}  // namespace attendant::server
