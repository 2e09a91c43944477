#include "server/models/model_tokenizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/tokenizer_json.h"
#include "server/text/tokenizer_files.h"

namespace attendant::server {
namespace {

// English of about the mix that people send; it is timed, and its tokens are of no interest.
constexpr char kSample[] =
    "The quick brown fox jumps over the lazy dog. Attention is computed for every token of a text, "
    "so 12,345 words in 2 languages (or more) take a while; see https://example.com for details. ";
constexpr int kSampleRuns = 20;

double TimeTokenizer(const text::Tokenizer& tokenizer, const Clock& clock) {
  const text::EncodeOptions options = {.places = false};
  if (!tokenizer.Encode(kSample, options).ok()) return 0;
  const absl::Time begun = clock.Now();
  for (int i = 0; i < kSampleRuns; ++i) tokenizer.Encode(kSample, options).IgnoreError();
  const double seconds = absl::ToDoubleSeconds(clock.Now() - begun);
  return seconds > 0 ? kSampleRuns * static_cast<double>(sizeof(kSample) - 1) / seconds : 0;
}

}  // namespace

std::shared_ptr<const ModelTokenizer> LoadModelTokenizer(
    const ModelDescription& model, const std::map<std::string, std::string>& files,
    const Clock& clock, std::vector<std::string>& notes) {
  auto made = std::make_shared<ModelTokenizer>();
  if (!model.embeddings) {
    made->why_none = "it has no token embeddings";
    return made;
  }
  absl::StatusOr<text::EffectiveTokenizer> loaded = text::LoadTokenizerFiles(files);
  if (absl::IsNotFound(loaded.status())) {
    if (!files.empty()) {
      made->why_none =
          "its directory has no tokenizer.json (AutoTokenizer's save_pretrained writes it), "
          "vocab.txt, vocab.json with merges.txt, or SentencePiece model";
    }
    return made;
  }
  if (!loaded.ok()) {
    made->why_none = absl::StrCat("its tokenizer cannot be used: ", loaded.status().message());
    return made;
  }
  notes = std::move(loaded->notes);
  made->why_none.clear();
  made->bytes_per_second = TimeTokenizer(*loaded->tokenizer, clock);
  made->has_types = loaded->has_types;
  made->unknown_id = loaded->unknown_id;
  made->tokenizer = std::move(loaded->tokenizer);
  return made;
}

void ApplyTokenizerClass(const std::map<std::string, std::string>& files,
                         Tokenization& tokenization) {
  if (tokenization.tokenizer_json.empty()) return;
  for (const auto& [key, part] : text::ReplacedParts(files)) {
    if (key == "post_processor" && tokenization.leaves_out_special_tokens) continue;
    SetMember(key, part, tokenization.tokenizer_json);
  }
}

}  // namespace attendant::server
