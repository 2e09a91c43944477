#include "server/text_calls/text_parts.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
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

int64_t BytesOf(const TextTask& task, const TextInput& input) {
  if (input.ids) return static_cast<int64_t>(input.ids->size()) * kBytesPerToken;
  const size_t first = input.text.size() + (PairsQuery(task) ? task.query->size() : 0);
  return static_cast<int64_t>(first + (input.pair ? input.pair->size() : 0));
}

// The tasks by which models of late interaction tell texts apart.
constexpr char kQueryTask[] = "query", kDocumentTask[] = "document";

enum class InputKind { kText, kPair, kIds };

InputKind KindOf(const TextInput& input) {
  if (input.ids) return InputKind::kIds;
  return input.pair ? InputKind::kPair : InputKind::kText;
}

class PartSize {
 public:
  explicit PartSize(const PartLimits& limits) : limits_(limits) {}

  // Adds an input, unless it is of another kind or the part has enough without it.
  bool Add(int64_t bytes, InputKind kind) {
    const auto cut = [&](int64_t tokens) {
      return limits_.input_tokens == 0 ? tokens : std::min(tokens, limits_.input_tokens);
    };
    const int64_t least = kind == InputKind::kIds ? 0 : limits_.padded_tokens;
    const int64_t expected = std::max(least, cut(bytes / kBytesPerToken + kAddedTokens));
    const int64_t most =
        kind == InputKind::kIds ? expected : std::max(least, cut(bytes + kAddedTokens));
    if (inputs_ > 0 &&
        (kind != kind_ || inputs_ == limits_.inputs || bytes_ + bytes > kMostBytes ||
         expected_ + expected > limits_.batch_tokens || most_ + most > limits_.request_tokens)) {
      return false;
    }
    ++inputs_;
    bytes_ += bytes;
    expected_ += expected;
    most_ += most;
    kind_ = kind;
    return true;
  }

 private:
  PartLimits limits_;
  size_t inputs_ = 0;
  int64_t bytes_ = 0, expected_ = 0, most_ = 0;
  InputKind kind_ = InputKind::kText;
};

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
  request.set_omit_hidden_states(task.wish != TextWish::kTokenVectors);
  switch (task.wish) {
    case TextWish::kVectors:
      request.set_return_pooled(true);
      request.set_pooling(model.tokenization->texts_take_mean ? v1::MEAN : v1::MODEL_POOLING);
      request.set_normalize_pooled(task.normalize);
      break;
    case TextWish::kScores:
      if (task.interacts) {
        request.set_task(TaskOf(task, model));
        break;
      }
      request.set_return_pooled(true);
      request.set_pooling(v1::CLASSIFIER);
      break;
    case TextWish::kSparse:
      request.set_return_sparse(true);
      break;
    case TextWish::kEntities:
      request.set_return_token_vectors(true);
      request.set_return_tokens(true);
      break;
    case TextWish::kTokenVectors:
      if (!IsMultiVector(model)) break;
      request.set_omit_hidden_states(true);
      request.set_return_token_vectors(true);
      request.set_task(TaskOf(task, model));
      break;
    case TextWish::kTokens:
      break;
  }
}

// Returns an empty string for the default.
std::string PromptName(const TextTask& task, const TextPart& part,
                       const Tokenization& tokenization) {
  if (task.prompt || !task.prompt_name.empty() || HasPairs(task, part)) return task.prompt_name;
  for (const std::string& name : task.preferred_prompts) {
    if (tokenization.prompts.count(name) > 0) return name;
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
  std::vector<size_t> order(task.inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const TextInput &left = task.inputs[a], &right = task.inputs[b];
    return std::pair(KindOf(left), -BytesOf(task, left)) <
           std::pair(KindOf(right), -BytesOf(task, right));
  });
  std::vector<TextPart> parts;
  PartSize size(limits);
  for (const size_t input : order) {
    const int64_t bytes = BytesOf(task, task.inputs[input]);
    const InputKind kind = KindOf(task.inputs[input]);
    if (parts.empty() || !size.Add(bytes, kind)) {
      parts.emplace_back();
      size = PartSize(limits);
      size.Add(bytes, kind);
    }
    parts.back().push_back(input);
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
  if (task.prompt) request.set_prompt(*task.prompt);
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

void ScoreBy(const QueryTensor& query, PartMessage& message) {
  v1::Tensor& tensor = *message.request.mutable_query_vectors();
  tensor.set_dtype(v1::FLOAT32);
  tensor.mutable_shape()->Add(query.shape.begin(), query.shape.end());
  message.payloads[{v1::EncodeRequest::kQueryVectorsFieldNumber}] = query.data;
}

TextFields MakeTextFields(const TextTask& task, const TextPart& part, const ServedModel& model) {
  TextFields fields;
  for (const size_t input : part) {
    fields.texts.push_back(PayloadOf(FirstText(task, input)));
    if (const std::string* second = SecondText(task, input)) {
      fields.pairs.push_back(PayloadOf(*second));
    }
  }
  fields.prompt = task.prompt;
  fields.prompt_name = PromptName(task, part, *model.tokenization);
  fields.truncation = task.truncation.value();
  fields.add_special_tokens = task.add_special_tokens;
  fields.places = true;
  fields.most_tokens = int64_t{1} << 40;
  return fields;
}

absl::Status CheckIds(const TextTask& task, const ServedModel& model) {
  const text::Tokenizer* tokenizer = model.tokenizer->tokenizer.get();
  const Tokenization& tokenization = *model.tokenization;
  const bool has_ids =
      absl::c_any_of(task.inputs, [](const TextInput& input) { return input.ids.has_value(); });
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
