#include "server/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/added_tokens.h"
#include "server/text/base/byte_characters.h"
#include "server/text/base/items.h"
#include "server/text/base/unicode.h"
#include "server/text/models/model.h"
#include "server/text/normalizer.h"
#include "server/text/post_processor.h"
#include "server/text/pre_tokenizer.h"
#include "server/text/split_pattern.h"
#include "server/text/tokenizer_parts.h"

namespace attendant::text {
namespace {

// Of a token in an Encoding.
constexpr size_t kTokenBytes = 2 * sizeof(uint32_t) + 1 + 2 * sizeof(TextRange);

bool IsPadding(char32_t code) {
  return code == ByteCharacters()[' '] || HasFlag(CodeFlags(), code, kWhitespace);
}

}  // namespace

Padding PaddingOf(ItemSpan text) {
  constexpr size_t kMost = 0xFFFF;
  size_t leading = 0, trailing = 0;
  while (leading < text.size() && IsPadding(text[leading].code)) ++leading;
  while (trailing < text.size() && IsPadding(text[text.size() - 1 - trailing].code)) ++trailing;
  return {static_cast<uint16_t>(std::min(leading, kMost)),
          static_cast<uint16_t>(std::min(trailing, kMost))};
}

// A token, with its place in bytes of the text.
struct PlacedToken {
  uint32_t id;
  TextRange bytes;
  Padding padding;
};

// One text's way to its tokens.
class Tokenizer::Run {
 public:
  Run(const Parts& parts, absl::string_view text) : parts_(parts), text_(text) {}

  // Once there are `enough` tokens on the side that is kept, further text is left out.
  absl::Status Tokenize(const EncodeOptions& options, size_t enough, absl::string_view field) {
    if (text_.size() > kMaxTextBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": expected at most ", kMaxTextBytes, " bytes; got ", text_.size()));
    }
    if (!AppendItems(text_, original_)) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": expected UTF-8; got something else at byte ", ValidPrefix(text_)));
    }
    SplitText();
    parts_.pre_tokenizer.apply(pieces_);
    ApplyModel(options.truncation_side, enough);
    if (options.places) FindPlaces();
    return absl::OkStatus();
  }

  size_t size() const { return tokens_.size(); }

  // Keeps `count` tokens of one side.
  void Truncate(size_t count, TruncationSide side) {
    if (count >= tokens_.size()) return;
    if (side == TruncationSide::kLeft) {
      tokens_.erase(tokens_.begin(), tokens_.end() - count);
    } else {
      tokens_.resize(count);
    }
    truncated_ = true;
  }
  bool truncated() const { return truncated_; }

  void AppendTo(uint8_t text, uint32_t type_id, bool places, Encoding& encoding) const {
    encoding.type_ids.insert(encoding.type_ids.end(), tokens_.size(), type_id);
    encoding.text_of.insert(encoding.text_of.end(), tokens_.size(), text);
    encoding.ids.reserve(encoding.ids.size() + tokens_.size());
    for (const PlacedToken& token : tokens_) encoding.ids.push_back(token.id);
    if (!places) return;
    encoding.code_points.reserve(encoding.ids.size());
    encoding.bytes.reserve(encoding.ids.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
      TextRange place = tokens_[i].bytes;
      if (!is_ascii_) place = {CodePointAt(place.begin), CodePointAt(place.end)};
      for (const bool keeps_prefix : parts_.post_processor.trims) {
        Trim(tokens_[i].padding, i == 0, keeps_prefix, place.begin, place.end);
      }
      encoding.code_points.push_back(place);
      encoding.bytes.push_back({ByteAt(place.begin), ByteAt(place.end)});
    }
  }

 private:
  // Splits at added tokens, and normalizes the text between them.
  void SplitText() {
    const Piece whole = {0, static_cast<uint32_t>(original_.size())};
    std::vector<Piece> raw;
    parts_.added.Find(original_, whole, false, raw);
    for (const Piece& piece : raw) {
      Items& items = pieces_.items;
      const uint32_t first = static_cast<uint32_t>(items.size());
      const auto begin = original_.begin() + piece.first, end = original_.begin() + piece.last;
      if (!piece.is_text()) {
        items.insert(items.end(), begin, end);
        pieces_.pieces.push_back({first, static_cast<uint32_t>(items.size()), piece.added_id});
        continue;
      }
      Items normalized(begin, end);
      parts_.normalizer.apply(normalized);
      if (items.empty()) {
        items.swap(normalized);
      } else {
        items.insert(items.end(), normalized.begin(), normalized.end());
      }
      parts_.added.Find(items, {first, static_cast<uint32_t>(items.size())}, true, pieces_.pieces);
    }
  }

  void ApplyModel(TruncationSide side, size_t enough) {
    ModelScratch scratch;
    std::vector<ModelToken> model_tokens;
    const std::vector<Piece>& pieces = pieces_.pieces;
    tokens_.reserve(pieces.size() + pieces.size() / 2);
    const bool from_right = side == TruncationSide::kLeft;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[from_right ? pieces.size() - 1 - i : i];
      const size_t before = tokens_.size();
      AddTokens(piece, scratch, model_tokens);
      if (from_right) std::reverse(tokens_.begin() + before, tokens_.end());
      if (tokens_.size() > enough) break;
    }
    if (from_right) std::reverse(tokens_.begin(), tokens_.end());
  }

  void AddTokens(const Piece& piece, ModelScratch& scratch, std::vector<ModelToken>& found) {
    const ItemSpan items = ItemSpan(pieces_.items).subspan(piece.first, piece.last - piece.first);
    const bool trims = !parts_.post_processor.trims.empty();
    found.clear();
    if (piece.is_text()) {
      parts_.model->Tokenize(items, scratch, found);
    } else {
      found.push_back({static_cast<uint32_t>(piece.added_id), 0, piece.last - piece.first});
    }
    for (const ModelToken& token : found) {
      PlacedToken placed = {token.id, {items[token.first].begin, items[token.last - 1].end}, {}};
      if (trims && (!piece.is_text() || parts_.model->HasSurfaceText(token.id))) {
        placed.padding = PaddingOf(items.subspan(token.first, token.last - token.first));
      } else if (trims) {
        const auto known = parts_.padding.find(token.id);
        if (known != parts_.padding.end()) placed.padding = known->second;
      }
      tokens_.push_back(placed);
    }
  }

  // Prepares CodePointAt.
  void FindPlaces() {
    is_ascii_ = original_.size() == text_.size();
    if (is_ascii_) return;
    code_points_.resize(text_.size() + 1);
    for (uint32_t i = 0; i < original_.size(); ++i) {
      std::fill(code_points_.begin() + original_[i].begin, code_points_.begin() + original_[i].end,
                i);
    }
    code_points_.back() = static_cast<uint32_t>(original_.size());
  }

  uint32_t CodePointAt(uint32_t byte) const { return code_points_[byte]; }
  uint32_t ByteAt(uint32_t code_point) const {
    return code_point < original_.size() ? original_[code_point].begin
                                         : static_cast<uint32_t>(text_.size());
  }

  const Parts& parts_;
  const absl::string_view text_;
  Items original_;
  Pieces pieces_;
  std::vector<PlacedToken> tokens_;
  bool truncated_ = false;
  bool is_ascii_ = true;
  std::vector<uint32_t> code_points_;  // of each byte
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {
  CodeFlags();  // made when a tokenizer is loaded, not when a text is
}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<Encoding> Tokenizer::EncodeAll(absl::Span<const absl::string_view> texts,
                                              const EncodeOptions& options) const {
  const bool is_pair = texts.size() == 2;
  const size_t special = options.add_special_tokens ? special_tokens(is_pair) : 0;
  if (options.max_length > 0 && options.max_length < special) {
    return absl::InvalidArgumentError(absl::StrCat("max_length: expected at least ", special,
                                                   " (tokens that are added); got ",
                                                   options.max_length));
  }
  const size_t room = options.max_length - special;
  // How a pair is cut depends on all tokens of both.
  const size_t enough = options.max_length == 0 || is_pair ? SIZE_MAX : room;
  std::vector<Run> runs;
  runs.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    runs.emplace_back(*parts_, texts[i]);
    RETURN_IF_ERROR(runs[i].Tokenize(options, enough, i == 0 ? "text" : "text_pair"));
  }
  if (options.max_length > 0) {
    const auto [first, second] =
        is_pair ? TruncatePair(runs[0].size(), runs[1].size(), room) : std::pair(room, size_t{0});
    runs[0].Truncate(first, options.truncation_side);
    if (is_pair) runs[1].Truncate(second, options.truncation_side);
  }
  Encoding encoding;
  for (const TemplatePart& part : parts_->post_processor.parts(is_pair)) {
    if (part.kind != TemplatePart::Kind::kSpecial) {
      const bool is_second = part.kind == TemplatePart::Kind::kSecond;
      runs[is_second].AppendTo(is_second ? Encoding::kSecond : Encoding::kFirst, part.type_id,
                               options.places, encoding);
    } else if (options.add_special_tokens) {
      encoding.ids.insert(encoding.ids.end(), part.ids.begin(), part.ids.end());
      encoding.type_ids.resize(encoding.ids.size(), part.type_id);
      encoding.text_of.resize(encoding.ids.size(), Encoding::kNoText);
      if (options.places) encoding.bytes.resize(encoding.ids.size());
      if (options.places) encoding.code_points.resize(encoding.ids.size());
    }
  }
  for (const Run& run : runs) encoding.truncated |= run.truncated();
  return encoding;
}

size_t Tokenizer::MaxEncodeBytes(absl::string_view text) const {
  const PreTokenizer& pre_tokenizer = parts_->pre_tokenizer;
  size_t items = 64;
  ForEachCode(text, [&](char32_t code) {
    items += size_t{parts_->growth->Of(code)} *
             (code < 0x80 ? pre_tokenizer.ascii_growth : pre_tokenizer.growth);
  });
  const size_t per_item =
      3 * sizeof(Item) + 2 * sizeof(Piece) + 2 * sizeof(Match) + 4 * parts_->model->scratch_bytes();
  const size_t per_token = 2 * (sizeof(PlacedToken) + sizeof(ModelToken)) + 2 * kTokenBytes;
  return items * (per_item + parts_->model->tokens_of_item() * per_token) +
         text.size() * (sizeof(Item) + sizeof(uint32_t)) + 4096;
}

size_t Tokenizer::special_tokens(bool is_pair) const {
  return parts_->post_processor.special_tokens(is_pair);
}

uint32_t Tokenizer::Parts::TokenId(absl::string_view token) const {
  const auto found = added_ids.find(token);
  return found == added_ids.end() ? model->Find(token) : found->second;
}

uint32_t Tokenizer::TokenId(absl::string_view token) const { return parts_->TokenId(token); }

std::string Tokenizer::TokenText(uint32_t id) const {
  std::string added = parts_->added.Text(id);
  return added.empty() ? parts_->model->Text(id) : added;
}

uint32_t Tokenizer::id_limit() const { return parts_->id_limit; }
}  // namespace attendant::text
