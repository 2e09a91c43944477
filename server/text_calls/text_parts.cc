#include "server/text_calls/text_parts.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "server/tensors/status_mapping.h"
#include "server/text_api/text_error.h"
#include "server/text_calls/text_models.h"

namespace attendant::server {
namespace {

// Usual bytes of a token; and tokens that are added to a text or a pair.
constexpr int64_t kBytesPerToken = 4, kAddedTokens = 4;
// Tokenizing so much does not keep others waiting for the worker.
constexpr int64_t kMostBytes = int64_t{256} << 10;

// Whether the inputs are the second texts of pairs.
bool PairsQuery(const TextTask& task) { return task.query && !task.interacts; }

// The client's name for an input.
std::string FieldOf(const TextTask& task, size_t input) {
  const bool only = task.inputs.size() == 1 && !task.query;
  return only ? task.field : absl::StrCat(task.field, "[", input, "]");
}

// The tasks by which models of late interaction tell texts apart.
constexpr char kQueryTask[] = "query", kDocumentTask[] = "document";

// A part has inputs of one kind.
enum class InputKind { kText, kPair, kIds };

// The kind and size of an input, or of a part.
struct PartSize {
  InputKind kind = InputKind::kText;
  int64_t bytes = 0;
  int64_t expected = 0, most = 0;  // tokens
};

PartSize SizeOf(const TextTask& task, const TextInput& input, const PartLimits& limits) {
  const auto cut = [&](int64_t tokens) {
    return limits.input_tokens == 0 ? tokens : std::min(tokens, limits.input_tokens);
  };
  if (input.ids) {
    const auto ids = static_cast<int64_t>(input.ids->size()), tokens = cut(ids + kAddedTokens);
    return {InputKind::kIds, ids * kBytesPerToken, tokens, tokens};
  }
  const auto bytes =
      static_cast<int64_t>(input.text.size() + (PairsQuery(task) ? task.query->size() : 0) +
                           (input.pair ? input.pair->size() : 0));
  return {input.pair ? InputKind::kPair : InputKind::kText, bytes,
          std::max(limits.padded_tokens, cut(bytes / kBytesPerToken + kAddedTokens)),
          std::max(limits.padded_tokens, cut(bytes + kAddedTokens))};
}

Payload PayloadOf(const std::string& text) {
  return Payload(MessageSlices{grpc::Slice(text.data(), text.size(), grpc::Slice::STATIC_SLICE)});
}

const std::string& FirstText(const TextTask& task, size_t input) {
  return PairsQuery(task) ? *task.query : task.inputs[input].text;
}

// Returns null if it is not a pair.
const std::string* SecondText(const TextTask& task, size_t input) {
  const TextInput& from = task.inputs[input];
  if (PairsQuery(task)) return &from.text;
  return from.pair ? &*from.pair : nullptr;
}

// Whether the part has pairs: texts and pairs are not together in one.
bool HasPairs(const TextTask& task, const TextPart& part) {
  return SecondText(task, part.front()) != nullptr;
}

void AddTexts(const TextTask& task, const TextPart& part, PartMessage& message) {
  using Request = v1::EncodeRequest;
  for (size_t i = 0; i < part.size(); ++i) {
    const int index = static_cast<int>(i);
    message.payloads[{Request::kTextsFieldNumber, index}] = PayloadOf(FirstText(task, part[i]));
    if (const std::string* second = SecondText(task, part[i])) {
      message.payloads[{Request::kTextPairsFieldNumber, index}] = PayloadOf(*second);
    }
  }
}

void AddIds(const TextTask& task, const TextPart& part, PartMessage& message) {
  MessageSlices slices;
  int64_t tokens = 0;
  for (const size_t input : part) {
    const std::vector<int32_t>& ids = *task.inputs[input].ids;
    message.request.add_lengths(static_cast<int64_t>(ids.size()));
    slices.emplace_back(ids.data(), ids.size() * sizeof(int32_t));
    tokens += static_cast<int64_t>(ids.size());
  }
  v1::Tensor& tensor = *message.request.mutable_token_ids();
  tensor.set_dtype(v1::INT32);
  tensor.add_shape(tokens);
  message.payloads[{v1::EncodeRequest::kTokenIdsFieldNumber}] = Payload(std::move(slices));
}

void SetOutputs(const TextTask& task, const ServedModel& model, v1::EncodeRequest& request) {
  const bool is_entities = task.wish == TextWish::kEntities;
  const bool is_tokens = task.wish == TextWish::kTokenVectors;
  const bool is_vectors = task.wish == TextWish::kVectors;
  const bool is_classes = task.wish == TextWish::kScores && !task.interacts;
  request.set_task(TaskOf(task, model));
  request.set_omit_hidden_states(!is_tokens || IsMultiVector(model));
  request.set_return_token_vectors(is_entities || (is_tokens && IsMultiVector(model)));
  request.set_return_tokens(is_entities);
  request.set_return_sparse(task.wish == TextWish::kSparse);
  request.set_return_pooled(is_vectors || is_classes);
  request.set_normalize_pooled(is_vectors && task.normalize);
  if (is_classes) request.set_pooling(v1::CLASSIFIER);
  if (is_vectors) {
    request.set_pooling(model.tokenization->texts_take_mean ? v1::MEAN : v1::MODEL_POOLING);
  }
}

// Returns an empty string for the default.
std::string PromptName(const TextTask& task, const TextPart& part,
                       const Tokenization& tokenization) {
  if (!task.prompt_name.empty() || HasPairs(task, part)) return task.prompt_name;
  for (const std::string& name : task.preferred_prompts) {
    if (tokenization.prompts.count(name) > 0) return name;
    for (const auto& [known, prompt] : tokenization.prompts) {
      if (absl::EqualsIgnoreCase(known, name)) return known;
    }
  }
  return "";
}

}  // namespace

std::string TaskOf(const TextTask& task, const ServedModel& model) {
  const bool wants_tokens = task.wish == TextWish::kTokenVectors && IsMultiVector(model);
  if (!task.interacts && !wants_tokens) return "";
  return task.prompt_name == kQueryTask && !task.interacts ? kQueryTask : kDocumentTask;
}

std::vector<TextPart> DivideInputs(const TextTask& task, const PartLimits& limits) {
  std::vector<PartSize> sizes;
  for (const TextInput& input : task.inputs) sizes.push_back(SizeOf(task, input, limits));
  std::vector<size_t> order(task.inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(sizes[a].kind, -sizes[a].bytes) < std::pair(sizes[b].kind, -sizes[b].bytes);
  });
  std::vector<TextPart> parts;
  PartSize last;
  for (const size_t input : order) {
    const PartSize& size = sizes[input];
    const bool fits = !parts.empty() && size.kind == last.kind &&
                      parts.back().size() < limits.inputs &&
                      last.bytes + size.bytes <= kMostBytes &&
                      last.expected + size.expected <= limits.batch_tokens &&
                      last.most + size.most <= limits.request_tokens;
    if (!fits) {
      parts.emplace_back();
      last = {size.kind};
    }
    parts.back().push_back(input);
    last = {size.kind, last.bytes + size.bytes, last.expected + size.expected,
            last.most + size.most};
  }
  return parts;
}

PartMessage MakePartMessage(const TextTask& task, const TextPart& part, const ServedModel& model) {
  PartMessage message;
  v1::EncodeRequest& request = message.request;
  request.set_model(model.name);
  request.set_truncation(task.truncation.value());
  SetOutputs(task, model, request);
  if (task.inputs[part.front()].ids) {
    AddIds(task, part, message);
    return message;
  }
  AddTexts(task, part, message);
  request.set_prompt_name(PromptName(task, part, *model.tokenization));
  return message;
}

PartMessage MakeQueryMessage(const TextTask& task, const ServedModel& model) {
  PartMessage message;
  message.request.set_model(model.name);
  message.request.set_truncation(task.truncation.value());
  message.request.set_omit_hidden_states(true);
  message.request.set_return_token_vectors(true);
  message.request.set_task(kQueryTask);
  message.payloads[{v1::EncodeRequest::kTextsFieldNumber, 0}] = PayloadOf(*task.query);
  return message;
}

void ScoreBy(const CheckedTensor& query, PartMessage& message) {
  v1::Tensor& tensor = *message.request.mutable_query_vectors();
  tensor.set_dtype(v1::FLOAT32);
  tensor.mutable_shape()->Add(query.shape.begin(), query.shape.end());
  message.payloads[{v1::EncodeRequest::kQueryVectorsFieldNumber}] = query.data;
}

absl::Status CheckIds(const TextTask& task, const ServedModel& model) {
  const text::Tokenizer* tokenizer = model.tokenizer->tokenizer.get();
  const Tokenization& tokenization = *model.tokenization;
  const bool has_ids =
      absl::c_any_of(task.inputs, [](const TextInput& input) { return input.ids.has_value(); });
  if (has_ids && !task.prompt_name.empty()) return CannotCombine("prompt_name", "token ids");
  // Padded texts end with another token.
  if (!task.checks_ids || !has_ids || tokenizer == nullptr || tokenization.padding.length > 0 ||
      tokenization.leaves_out_special_tokens || tokenizer->special_tokens(/*is_pair=*/false) == 0) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const text::Encoding any, tokenizer->Encode("a", {}));
  const auto& embeddings = model.encoder->description().embeddings;
  const int64_t most = embeddings ? MaxSequenceLength(*embeddings, tokenization) : 0;
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    if (!task.inputs[i].ids) continue;
    const std::vector<int32_t>& ids = *task.inputs[i].ids;
    const auto check = [&](const char* place, uint32_t special, int32_t id) {
      if (id == static_cast<int32_t>(special)) return absl::OkStatus();
      return TextError(
          TextErrorKind::kInvalid,
          absl::StrCat(FieldOf(task, i), ": expected token ids of the model, which ", place,
                       " with ", special, " (", Quote(tokenizer->TokenText(special)), "); got ", id,
                       "; send texts instead of another tokenizer's ids (LangChain: "
                       "check_embedding_ctx_length=False)"));
    };
    if (any.is_special(0)) {
      RETURN_IF_ERROR(check("begin", any.ids.front(), ids.front()));
    }
    // The client may have truncated ids at the model's maximum.
    const bool is_whole = most == 0 || static_cast<int64_t>(ids.size()) < most;
    if (is_whole && any.is_special(any.ids.size() - 1)) {
      RETURN_IF_ERROR(check("end", any.ids.back(), ids.back()));
    }
  }
  return absl::OkStatus();
}

absl::Status NameQuery(const absl::Status& error) {
  absl::string_view rest = error.message();
  if (!absl::IsInvalidArgument(error)) return error;
  if (!absl::ConsumePrefix(&rest, "texts[0]") && !absl::ConsumePrefix(&rest, "texts")) return error;
  return absl::InvalidArgumentError(absl::StrCat("query", rest));
}

absl::Status NameInput(const absl::Status& error, const TextTask& task, size_t input) {
  if (!absl::IsInvalidArgument(error)) return error;
  const std::string field = FieldOf(task, input);
  absl::string_view rest = error.message();
  if (PairsQuery(task) && absl::ConsumePrefix(&rest, "texts[0]")) {
    return absl::InvalidArgumentError(absl::StrCat("query", rest));
  }
  const bool pair = absl::ConsumePrefix(&rest, "text_pairs[0]");
  if (pair || absl::ConsumePrefix(&rest, "texts[0]")) {
    // A pair is a list of two texts.
    const bool of_pair = task.inputs[input].pair.has_value();
    return absl::InvalidArgumentError(
        absl::StrCat(field, of_pair ? (pair ? "[1]" : "[0]") : "", rest));
  }
  if (absl::ConsumePrefix(&rest, "texts") || absl::ConsumePrefix(&rest, "token_ids")) {
    return absl::InvalidArgumentError(absl::StrCat(field, rest));
  }
  return error;
}

}  // namespace attendant::server
