// The texts of a request, and their tokens.
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

// The fields that requests with texts share. The bytes of the texts stay where they arrived.
struct TextFields {
  std::vector<Payload> texts;
  std::vector<Payload> pairs;         // or none
  std::optional<std::string> prompt;  // none: that of prompt_name or, but for pairs, a default one
  std::string prompt_name;
  // Its prompt is the default if the model has one of its name, and its texts may have a length of
  // their own. Queries may be made longer.
  std::string task = {};
  bool has_default_prompt = true;  // otherwise the model's default one is
  v1::Truncation truncation = v1::NO_TRUNCATION;
  bool add_special_tokens = true;
  bool places = false;      // of tokens in the texts
  int64_t most_tokens = 0;  // of all texts
  ClientCache cache = {};   // which may know their tokens
};

// Reads those that a EncodeRequest and a TokenizeRequest have.
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

// Immutable, shared by a request and its response.
struct TokenizedTexts {
  std::vector<text::Encoding> texts;  // whose places count the prompt
  // The first tokens of each text, which all of its tokens attend to; empty: all of them.
  std::vector<int64_t> attended = {};
  uint32_t prompt_bytes = 0;
  uint32_t prompt_code_points = 0;
  // As sentence-transformers counts them: those of the prompt alone, without a special token at its
  // end.
  int64_t prompt_tokens = 0;
  absl::Duration duration = {};  // of tokenizing
  std::shared_ptr<const ModelTokenizer> tokenizer;

  int64_t tokens() const;
  // Upper bound of the bytes of what Describe returns for all texts.
  int64_t description_bytes() const;
  // The message for a text, whose places are known.
  v1::TextTokens Describe(size_t text) const;
};

// Upper bound of the bytes that TokenizeTexts takes, with its result.
int64_t TokenizingBytes(const TextFields& fields, const ServedModel& model);

// Takes long: to be called on a worker. INVALID_ARGUMENT, with the field: the model takes no texts,
// a text is not UTF-8 or is too long, there is no such prompt, all together have too many tokens.
absl::StatusOr<TokenizedTexts> TokenizeTexts(const TextFields& fields, const ServedModel& model,
                                             const Clock& clock);

}  // namespace attendant::server
