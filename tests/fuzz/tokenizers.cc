#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_files.h"
#include "tests/fuzz/fuzz_target.h"

namespace attendant {
namespace {

using text::Encoding;
using text::Tokenizer;

// First bytes from these on: the input has a tokenizer.json, or a SentencePiece model.
constexpr uint8_t kOwnFile = 128, kOwnModel = 192;

// Classes that read a SentencePiece model.
constexpr const char* kClasses[] = {"AlbertTokenizer",    "BigBirdTokenizer", "CamembertTokenizer",
                                    "DebertaV2Tokenizer", "GemmaTokenizer",   "LlamaTokenizer",
                                    "MBart50Tokenizer",   "MBartTokenizer",   "NllbTokenizer",
                                    "PegasusTokenizer",   "RemBertTokenizer", "T5Tokenizer",
                                    "XLMRobertaTokenizer"};

// One of each kind of model, normalizer and pre-tokenizer that most models have.
constexpr const char* kTokenizers[] = {
    R"({"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},"added_tokens":[{"id":0,"content":"[UNK]","single_word":false,"lstrip":false,
"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"[C]","single_word":true,"lstrip":true,"rstrip":true,
"normalized":true,"special":true}],"post_processor":{"type":"BertProcessing","cls":["[C]",1],"sep":["[S]",2]},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
"vocab":{"[UNK]":0,"[C]":1,"[S]":2,"a":3,"##a":4,"b":5,"##b":6,"ab":7,"1":8,"##1":9}}})",
    R"({"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true},
"added_tokens":[{"id":0,"content":"<u>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
"post_processor":null,"model":{"type":"Unigram","unk_id":0,"byte_fallback":false,
"vocab":[["<u>",0.0],["▁",-1.0],["a",-2.0],["b",-2.5],["aa",-3.0],["▁a",-2.2],["aab",-3.5],["1",-2.0]]}})",
    R"({"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,
"use_regex":true},"added_tokens":[],"post_processor":{"type":"RobertaProcessing","sep":["</s>",1],"cls":["<s>",0],
"trim_offsets":true,"add_prefix_space":true},"model":{"type":"BPE","dropout":null,"unk_token":null,
"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,
"vocab":{"<s>":0,"</s>":1,"a":2,"b":3,"Ġ":4,"aa":5,"aaaa":6,"Ġa":7,"Ì":8,"ģ":9,"Ìģ":10},
"merges":[["a","a"],["aa","aa"],["Ġ","a"],["Ì","ģ"]]}})"};

using Tokenizers = std::array<std::unique_ptr<Tokenizer>, std::size(kTokenizers)>;

Tokenizers LoadTokenizers() {
  Tokenizers loaded;
  for (size_t i = 0; i < loaded.size(); ++i)
    loaded[i] = std::move(Tokenizer::Load(kTokenizers[i]).value());
  return loaded;
}

std::string FindWrongPlace(const Encoding& encoding, size_t token, size_t bytes) {
  const text::TextRange place = encoding.bytes[token], points = encoding.code_points[token];
  if (place.begin > place.end || place.end > bytes)
    return absl::StrCat("byte ", place.end, " of ", bytes);
  if (points.begin > points.end || points.end > place.end)
    return absl::StrCat("code point ", points.end);
  return "";
}

// What is wrong with tokens of texts of so many bytes.
std::string FindWrongToken(const Tokenizer& tokenizer, const Encoding& encoding,
                           std::array<size_t, 2> bytes) {
  const size_t tokens = encoding.ids.size();
  if (encoding.type_ids.size() != tokens || encoding.text_of.size() != tokens ||
      encoding.bytes.size() != tokens || encoding.code_points.size() != tokens) {
    return "lists of different lengths";
  }
  for (size_t i = 0; i < tokens; ++i) {
    if (encoding.ids[i] >= tokenizer.id_limit()) return absl::StrCat("the id ", encoding.ids[i]);
    const uint8_t of = encoding.text_of[i];
    if (of > Encoding::kNoText) return absl::StrCat("a token of text ", of);
    std::string wrong = FindWrongPlace(encoding, i, of == Encoding::kNoText ? 0 : bytes[of]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string FuzzTexts(const Tokenizer& tokenizer, absl::string_view first,
                      absl::string_view second) {
  for (const size_t most : {size_t{0}, size_t{5}}) {
    const text::EncodeOptions options = {.max_length = most};
    const auto one = tokenizer.Encode(first, options);
    const auto pair = tokenizer.EncodePair(first, second, options);
    for (const auto* made : {&one, &pair}) {
      if (!made->ok()) {
        if (!absl::IsInvalidArgument(made->status())) return made->status().ToString();
        continue;
      }
      std::string wrong = FindWrongToken(tokenizer, **made, {first.size(), second.size()});
      if (!wrong.empty()) return wrong;
      if (most > 0 && (*made)->ids.size() > most)
        return absl::StrCat((*made)->ids.size(), " tokens of ", most);
    }
    if (!one.ok()) continue;
    const auto bare = tokenizer.Encode(first, {.max_length = most, .places = false});
    if (!bare.ok() || bare->ids != one->ids) return "other ids without places";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadModel(uint8_t choice, absl::string_view model) {
  const char* name = kClasses[choice % std::size(kClasses)];
  auto loaded = text::LoadTokenizerFiles(
      {{"tokenizer_config.json", absl::StrCat(R"({"tokenizer_class":")", name, "\"}")},
       {"tokenizer.model", std::string(model)}});
  if (!loaded.ok()) return loaded.status();
  return std::move(loaded->tokenizer);
}

}  // namespace

std::string FuzzTokenizer(absl::string_view input) {
  static const Tokenizers& known = *new Tokenizers(LoadTokenizers());
  const auto choice = static_cast<uint8_t>(input.empty() ? 0 : input[0]);
  input.remove_prefix(input.empty() ? 0 : 1);
  std::vector<absl::string_view> parts = absl::StrSplit(input, '\xff');
  parts.resize(3);
  if (choice < kOwnFile) return FuzzTexts(*known[choice % known.size()], parts[0], parts[1]);
  const auto loaded = choice < kOwnModel ? Tokenizer::Load(parts[0]) : LoadModel(choice, parts[0]);
  if (loaded.ok()) return FuzzTexts(**loaded, parts[1], parts[2]);
  const bool refused =
      absl::IsInvalidArgument(loaded.status()) || absl::IsUnimplemented(loaded.status());
  return refused ? "" : loaded.status().ToString();
}

}  // namespace attendant
