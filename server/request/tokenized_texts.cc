#include "server/request/tokenized_texts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "server/cache/encoding_cache.h"
#include "server/tensors/status_mapping.h"
#include "server/wire/request_codec.h"

namespace attendant::server {
namespace {

constexpr int64_t kTokenBytes = sizeof(uint32_t) * 2 + 1 + sizeof(text::TextRange) * 2;

std::string ReadText(const Payload& payload) {
  std::string text(static_cast<size_t>(payload.size()), '\0');
  payload.CopyTo(0, payload.size(), text.data());
  return text;
}

// Of tokenizing a text. One that is too long is refused before anything is done.
int64_t MaxBytesOf(const Payload& text, const text::Tokenizer& tokenizer) {
  if (text.size() > static_cast<int64_t>(text::Tokenizer::kMaxTextBytes)) return text.size();
  return static_cast<int64_t>(tokenizer.MaxEncodeBytes(ReadText(text)));
}

// Rewrites an error of the tokenizer with the request's name for the text.
absl::Status Rename(const absl::Status& status, const std::string& name) {
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, "text:");
  return absl::InvalidArgumentError(absl::StrCat(name, ":", message));
}

// The same for the text or the pair at `index`.
absl::Status Rename(const absl::Status& status, size_t index) {
  absl::string_view message = status.message();
  if (!absl::ConsumePrefix(&message, "text_pair:")) {
    return Rename(status, absl::StrCat("texts[", index, "]"));
  }
  return absl::InvalidArgumentError(absl::StrCat("text_pairs[", index, "]:", message));
}

absl::StatusOr<std::string> ChoosePrompt(const TextFields& fields, const ServedModel& model) {
  const Tokenization& known = *model.tokenization;
  if (fields.prompt && !fields.prompt_name.empty()) return CannotCombine("prompt_name", "prompt");
  std::string prompt;
  if (fields.prompt) {
    prompt = *fields.prompt;
  } else if (!fields.prompt_name.empty()) {
    const auto named = known.prompts.find(fields.prompt_name);
    if (named == known.prompts.end()) {
      const std::string names = absl::StrJoin(
          known.prompts, ", ",
          [](std::string* out, const auto& known_prompt) { *out += known_prompt.first; });
      if (names.empty()) return NotSupported("prompt_name", "", model.name, "it has no prompts");
      return InvalidField("prompt_name", absl::StrCat("one of the model's prompts, ", names),
                          Quote(fields.prompt_name));
    }
    prompt = named->second;
  } else {
    auto standard = known.prompts.find(fields.task);
    if (fields.task == "document") {
      for (const char* name : {"passage", "corpus"}) {  // as sentence-transformers looks for one
        if (standard == known.prompts.end()) standard = known.prompts.find(name);
      }
    }
    if (standard == known.prompts.end()) standard = known.prompts.find(known.default_prompt);
    if (standard != known.prompts.end()) prompt = standard->second;
  }
  return prompt;
}

absl::Status CheckFields(const TextFields& fields, const ServedModel& model) {
  if (model.tokenizer->tokenizer == nullptr) {
    return NotSupported("texts", "", model.name, model.tokenizer->why_none);
  }
  if (fields.texts.empty()) return InvalidField("texts", "at least one text", "none");
  if (std::ssize(fields.texts) > kMostRepeatedPayloads) {
    return InvalidField("texts", absl::StrCat("at most ", kMostRepeatedPayloads, " texts"), "more");
  }
  if (!fields.pairs.empty() && fields.pairs.size() != fields.texts.size()) {
    return InvalidField("text_pairs",
                        absl::StrCat("none or ", fields.texts.size(), " (one for each text)"),
                        absl::StrCat(fields.pairs.size()));
  }
  if (!v1::Truncation_IsValid(fields.truncation)) {
    return InvalidField("truncation", "a Truncation value",
                        absl::StrCat(static_cast<int>(fields.truncation)));
  }
  return absl::OkStatus();
}

text::EncodeOptions OptionsOf(const TextFields& fields, const ServedModel& model) {
  text::EncodeOptions options;
  options.add_special_tokens =
      fields.add_special_tokens && !model.tokenization->leaves_out_special_tokens;
  options.places = fields.places;
  if (fields.truncation == v1::NO_TRUNCATION) return options;
  options.max_length = static_cast<size_t>(MaxSequenceLength(
      *model.encoder->description().embeddings, *model.tokenization, fields.task));
  if (fields.truncation == v1::TRUNCATE_LEFT) {
    options.truncation_side = text::TruncationSide::kLeft;
  }
  return options;
}

// Tokenizes a pair that the model's template joins into one text. All of it counts as a prompt,
// with tokens that have no place in either text. As in sentence-transformers, the text is truncated
// on the model's side, and then ends with the template's text after the second text.
absl::StatusOr<text::Encoding> EncodeTemplate(const Tokenization& known, const std::string& first,
                                              const std::string& second, const std::string& prompt,
                                              const text::Tokenizer& tokenizer,
                                              text::EncodeOptions options) {
  const PairTemplate& with = *known.pair_template;
  options.add_special_tokens = false;
  options.truncation_side =
      known.truncates_left ? text::TruncationSide::kLeft : text::TruncationSide::kRight;
  ASSIGN_OR_RETURN(
      text::Encoding encoding,
      tokenizer.Encode(
          absl::StrCat(with.before, prompt.empty() ? with.instruction : prompt,
                       with.after_instruction, first, with.between, second, with.after),
          options));
  std::fill(encoding.text_of.begin(), encoding.text_of.end(), text::Encoding::kNoText);
  std::fill(encoding.bytes.begin(), encoding.bytes.end(), text::TextRange());
  std::fill(encoding.code_points.begin(), encoding.code_points.end(), text::TextRange());
  if (!encoding.truncated) return encoding;
  ASSIGN_OR_RETURN(const text::Encoding end, tokenizer.Encode(with.after, options));
  const auto kept = static_cast<std::ptrdiff_t>(std::min(end.ids.size(), encoding.ids.size()));
  std::copy(end.ids.end() - kept, end.ids.end(), encoding.ids.end() - kept);
  return encoding;
}

// Tokenizes a text or, if `pair` is not null, both. The prompt is put before the first one.
absl::StatusOr<text::Encoding> EncodeOne(const std::string& text, const std::string* pair,
                                         const std::string& prompt, const ServedModel& model,
                                         const text::EncodeOptions& options) {
  const text::Tokenizer& tokenizer = *model.tokenizer->tokenizer;
  const auto encode = [&](const std::string& first) {
    return pair == nullptr ? tokenizer.Encode(first, options)
                           : tokenizer.EncodePair(first, *pair, options);
  };
  const bool has_template = pair != nullptr && model.tokenization->pair_template;
  if (prompt.empty() && !has_template) return encode(text);
  absl::StatusOr<text::Encoding> encoding =
      has_template ? EncodeTemplate(*model.tokenization, text, *pair, prompt, tokenizer, options)
                   : encode(prompt + text);
  if (encoding.ok()) return encoding;
  // Whose error counts bytes of the text, without the prompt or template.
  const absl::Status plain = encode(text).status();
  return plain.ok() ? encoding.status() : plain;
}

// How the texts are made longer; null: they are not.
const QueryExpansion* ExpansionOf(const TextFields& fields, const Tokenization& known) {
  const bool expands = fields.task == "query" && fields.pairs.empty() && known.query_expansion;
  return expands ? &*known.query_expansion : nullptr;
}

// As EncodeOne, unless the cache knows the tokens already.
absl::StatusOr<text::Encoding> EncodeOnce(const TextFields& fields, size_t i,
                                          const std::string& prompt, const ServedModel& model,
                                          const text::EncodeOptions& options,
                                          EncodingCache& cache) {
  const std::string text = ReadText(fields.texts[i]);
  std::optional<std::string> pair;
  if (!fields.pairs.empty()) pair = ReadText(fields.pairs[i]);
  const std::string* const second = pair ? &*pair : nullptr;
  if (std::optional<text::Encoding> known = cache.Find(text, second)) return *std::move(known);
  absl::StatusOr<text::Encoding> encoding = EncodeOne(text, second, prompt, model, options);
  if (encoding.ok()) cache.Keep(*encoding);
  return encoding;
}

// Names the longer text of a pair.
absl::Status CheckLength(const text::Encoding& encoding, size_t i, const TextFields& fields,
                         const ServedModel& model) {
  const int64_t longest = model.encoder->description().embeddings->longest_sequence();
  const auto tokens = static_cast<int64_t>(encoding.ids.size());
  if (longest == 0 || tokens <= longest) return absl::OkStatus();
  const bool is_pair = !fields.pairs.empty();
  const bool is_second = is_pair && fields.pairs[i].size() > fields.texts[i].size();
  return InvalidField(
      absl::StrCat(is_second ? "text_pairs[" : "texts[", i, "]"),
      absl::StrCat("at most ", longest, is_pair ? " tokens in a pair" : " tokens"),
      absl::StrCat(tokens, "; set truncation (truncate over HTTP) to cut longer texts"));
}

// Adds tokens until there are as many as the padding says.
void Pad(const TextPadding& padding, bool has_places, text::Encoding& encoding) {
  const size_t length = static_cast<size_t>(padding.length);
  if (encoding.ids.size() >= length) return;
  const size_t added = length - encoding.ids.size();
  const auto add = [&](auto& list, auto value) {
    list.insert(padding.is_left ? list.begin() : list.end(), added, value);
  };
  add(encoding.ids, static_cast<uint32_t>(padding.id));
  add(encoding.type_ids, uint32_t{0});
  add(encoding.text_of, text::Encoding::kNoText);
  if (!has_places) return;
  add(encoding.bytes, text::TextRange());
  add(encoding.code_points, text::TextRange());
}

int64_t CountPromptTokens(const text::Encoding& prompt, const Tokenization& known) {
  const auto tokens = static_cast<int64_t>(prompt.ids.size());
  if (tokens == 0) return 0;
  const bool ends = prompt.is_special(prompt.ids.size() - 1) ||
                    std::any_of(known.special_tokens.begin(), known.special_tokens.end(),
                                [&](const auto& role) { return role.second == prompt.ids.back(); });
  return tokens - (ends ? 1 : 0);
}

uint32_t CountCodePoints(const std::string& text) {
  return static_cast<uint32_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

int64_t TokenizedTexts::tokens() const {
  int64_t sum = 0;
  for (const text::Encoding& text : texts) sum += static_cast<int64_t>(text.ids.size());
  return sum;
}

int64_t TokenizedTexts::description_bytes() const {
  constexpr int64_t kTextBytes = 64, kNumberBytes = 7 * 5, kStringHeadBytes = 4;
  int64_t bytes = 0;
  for (const text::Encoding& text : texts) {
    bytes += kTextBytes;
    for (const uint32_t id : text.ids) {
      bytes += kNumberBytes + kStringHeadBytes +
               static_cast<int64_t>(tokenizer->tokenizer->TokenText(id).size());
    }
  }
  return bytes;
}

v1::TextTokens TokenizedTexts::Describe(size_t text) const {
  const text::Encoding& encoding = texts[text];
  v1::TextTokens out;
  out.mutable_ids()->Add(encoding.ids.begin(), encoding.ids.end());
  out.mutable_token_type_ids()->Add(encoding.type_ids.begin(), encoding.type_ids.end());
  out.mutable_sources()->Add(encoding.text_of.begin(), encoding.text_of.end());
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const bool is_first = encoding.text_of[i] == text::Encoding::kFirst;
    const auto place = [&](uint32_t at, uint32_t prompt) {
      return is_first ? at - std::min(at, prompt) : at;
    };
    out.add_begins(place(encoding.code_points[i].begin, prompt_code_points));
    out.add_ends(place(encoding.code_points[i].end, prompt_code_points));
    out.add_byte_begins(place(encoding.bytes[i].begin, prompt_bytes));
    out.add_byte_ends(place(encoding.bytes[i].end, prompt_bytes));
    out.add_tokens(tokenizer->tokenizer->TokenText(encoding.ids[i]));
  }
  out.set_truncated(encoding.truncated);
  return out;
}

int64_t TokenizingBytes(const TextFields& fields, const ServedModel& model) {
  if (model.tokenizer->tokenizer == nullptr) return 0;
  const text::Tokenizer& tokenizer = *model.tokenizer->tokenizer;
  const std::optional<PairTemplate>& with = model.tokenization->pair_template;
  int64_t most = 0, all = 0;
  const QueryExpansion* expansion = ExpansionOf(fields, *model.tokenization);
  const int64_t added = expansion == nullptr ? 0 : expansion->length * kTokenBytes;
  for (size_t i = 0; i < fields.texts.size(); ++i) {
    int64_t bytes = MaxBytesOf(fields.texts[i], tokenizer) + added;
    if (i < fields.pairs.size()) bytes += MaxBytesOf(fields.pairs[i], tokenizer);
    if (!fields.pairs.empty() && with) {
      bytes += static_cast<int64_t>(tokenizer.MaxEncodeBytes(absl::StrCat(
          with->before, with->instruction, with->after_instruction, with->between, with->after)));
    }
    bytes += kTokenBytes * model.tokenization->padding.length;
    most = std::max(most, bytes);
    all += bytes;
  }
  const absl::StatusOr<std::string> prompt = ChoosePrompt(fields, model);
  if (prompt.ok()) most += static_cast<int64_t>(tokenizer.MaxEncodeBytes(*prompt));
  // At most the results of `most_tokens` tokens and one text exist at a time.
  return most + std::min(all, 2 * kTokenBytes * fields.most_tokens);
}

absl::StatusOr<TokenizedTexts> TokenizeTexts(const TextFields& fields, const ServedModel& model,
                                             const Clock& clock) {
  const absl::Time begun = clock.Now();
  RETURN_IF_ERROR(CheckFields(fields, model));
  ASSIGN_OR_RETURN(const std::string prompt, ChoosePrompt(fields, model));
  const text::Tokenizer& tokenizer = *model.tokenizer->tokenizer;
  const text::EncodeOptions options = OptionsOf(fields, model);
  TokenizedTexts made;
  made.tokenizer = model.tokenizer;
  made.prompt_bytes = static_cast<uint32_t>(prompt.size());
  made.prompt_code_points = CountCodePoints(prompt);
  if (!prompt.empty()) {
    absl::StatusOr<text::Encoding> encoded = tokenizer.Encode(prompt, options);
    if (!encoded.ok()) return Rename(encoded.status(), "prompt");
    made.prompt_tokens = CountPromptTokens(*encoded, *model.tokenization);
  }
  const QueryExpansion* expansion = ExpansionOf(fields, *model.tokenization);
  EncodingCache cache(fields.cache, fields.client, model.number.value(), prompt, options);
  int64_t tokens = 0;
  for (size_t i = 0; i < fields.texts.size(); ++i) {
    auto encoding = EncodeOnce(fields, i, prompt, model, options, cache);
    if (!encoding.ok()) return Rename(encoding.status(), i);
    if (fields.limits_texts) {
      RETURN_IF_ERROR(CheckLength(*encoding, i, fields, model));
    }
    if (!model.tokenizer->has_types) {
      std::fill(encoding->type_ids.begin(), encoding->type_ids.end(), uint32_t{0});
    }
    if (expansion != nullptr) {
      if (!expansion->attended) {
        made.attended.push_back(static_cast<int64_t>(encoding->ids.size()));
      }
      Pad({.length = expansion->length,
           .id = static_cast<int32_t>(tokenizer.TokenId(expansion->token))},
          options.places, *encoding);
    }
    Pad(model.tokenization->padding, options.places, *encoding);
    tokens += static_cast<int64_t>(encoding->ids.size());
    if (tokens > fields.most_tokens) {
      return InvalidField(
          "texts",
          absl::StrCat("at most ", fields.most_tokens, " tokens in total (--max-request-tokens)"),
          absl::StrCat("more, up to texts[", i, "]"));
    }
    made.texts.push_back(*std::move(encoding));
  }
  made.duration = clock.Now() - begun;
  return made;
}

}  // namespace attendant::server
