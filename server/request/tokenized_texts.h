// Texts of a request, and their tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/base/clock.h"
#include "server/cache/result_cache.h"
#include "server/models/served_model.h"
#include "server/tensors/tensor_check.h"
#include "server/text/tokenizer.h"

namespace attendant::server {

// The fields shared by requests with texts. The texts' bytes are not copied.
struct TextFields {
  std::vector<Payload> texts;
  std::vector<Payload> pairs;         // or empty
  std::optional<std::string> prompt;  // if not set, from prompt_name or the default
  std::string prompt_name;
  // Task of the texts. The model's prompt of that name is the default, its texts may have their own
  // maximum length, and queries may be expanded.
  std::string task = {};
  v1::Truncation truncation = v1::NO_TRUNCATION;
  bool add_special_tokens = true;
  bool places = false;       // return the tokens' positions in the texts
  bool limits_texts = true;  // refuse texts longer than the model's longest sequence
  int64_t most_tokens = 0;   // for all texts together
  // A cache with the tokens of texts that the client has sent before, or null.
  ResultCache* cache = nullptr;
  std::string client = {};  // see ComputeRequest::client
};

// Reads the fields that EncodeRequest and TokenizeRequest share.
template <typename Request>
TextFields ReadTextFields(const Request& request, const RequestPayloads& payloads) {
  TextFields fields;
  fields.texts = payloads.AllOf(Request::kTextsFieldNumber);
  fields.pairs = payloads.AllOf(Request::kTextPairsFieldNumber);
  if (request.has_prompt()) fields.prompt = request.prompt();
  fields.prompt_name = request.prompt_name();
  fields.truncation = request.truncation();
  return fields;
}

// Immutable; shared by a request and its response.
struct TokenizedTexts {
  std::vector<text::Encoding> texts;  // positions count the prompt
  // [B]: the number of leading tokens to which a text's tokens attend; empty if all.
  std::vector<int64_t> attended = {};
  uint32_t prompt_bytes = 0;
  uint32_t prompt_code_points = 0;
  // As sentence-transformers counts them: the tokens of the prompt by itself, without a final
  // special token.
  int64_t prompt_tokens = 0;
  absl::Duration duration = {};  // of tokenizing
  std::shared_ptr<const ModelTokenizer> tokenizer;

  int64_t tokens() const;
  // Upper bound of the bytes that Describe returns for all texts.
  int64_t description_bytes() const;
  // Returns the message for a text. Requires `places`.
  v1::TextTokens Describe(size_t text) const;
};

// Upper bound of the memory that TokenizeTexts needs, including its result.
int64_t TokenizingBytes(const TextFields& fields, const ServedModel& model);

// Slow: call it on a worker. Returns INVALID_ARGUMENT with the field if the model does not take
// texts, a text is not UTF-8 or too long, the prompt is unknown, or there are too many tokens in
// all.
absl::StatusOr<TokenizedTexts> TokenizeTexts(const TextFields& fields, const ServedModel& model,
                                             const Clock& clock);

}  // namespace attendant::server
