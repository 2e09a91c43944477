#include "server/text/pre_tokenizer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/base/byte_characters.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/unicode.h"
#include "server/text/split_pattern.h"
#include "server/text/word_pattern.h"

namespace attendant::text {
namespace {

using PreTokenizerOr = absl::StatusOr<std::unique_ptr<PreTokenizer>>;

class BertPreTokenizer : public PreTokenizer {
 public:
  void Apply(Pieces& pieces) const override {
    std::vector<Piece> split;
    split.reserve(pieces.items.size() / 4 + pieces.pieces.size());
    const uint16_t* flags = CodeFlags();
    for (const Piece& piece : pieces.pieces) {
      if (!piece.is_text()) {
        split.push_back(piece);
        continue;
      }
      uint32_t first = piece.first;
      for (uint32_t i = piece.first; i < piece.last; ++i) {
        const uint16_t own = flags[pieces.items[i].code] & (kWhitespace | kPunctuation);
        if (own == 0) continue;
        if (i > first) split.push_back({first, i});
        if ((own & kWhitespace) == 0) split.push_back({i, i + 1});
        first = i + 1;
      }
      if (piece.last > first) split.push_back({first, piece.last});
    }
    pieces.pieces.swap(split);
  }
};

// Splits by a pattern.
class Split : public PreTokenizer {
 public:
  Split(std::unique_ptr<SplitPattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void Apply(Pieces& pieces) const override {
    std::vector<Piece> split;
    split.reserve(pieces.items.size() / 4 + pieces.pieces.size());
    std::vector<Match> matches;
    for (const Piece& piece : pieces.pieces) {
      if (!piece.is_text()) {
        split.push_back(piece);
        continue;
      }
      matches.clear();
      pattern_->Find(ItemSpan(pieces.items).subspan(piece.first, piece.last - piece.first),
                     matches);
      if (invert_) {
        for (Match& match : matches) match.is_match = !match.is_match;
      }
      ApplyBehavior(behavior_, matches);
      for (const Match& match : matches) {
        split.push_back({piece.first + match.first, piece.first + match.last});
      }
    }
    pieces.pieces.swap(split);
  }

 private:
  const std::unique_ptr<SplitPattern> pattern_;
  const SplitBehavior behavior_;
  const bool invert_;
};

// Writes each piece anew.
class Rewrite : public PreTokenizer {
 public:
  void Apply(Pieces& pieces) const override {
    Pieces result;
    result.items.reserve(pieces.items.size() + pieces.pieces.size());
    result.pieces.reserve(pieces.pieces.size());
    for (const Piece& piece : pieces.pieces) {
      const ItemSpan items = ItemSpan(pieces.items).subspan(piece.first, piece.last - piece.first);
      if (piece.is_text()) {
        Write(items, result);
        continue;
      }
      const uint32_t first = static_cast<uint32_t>(result.items.size());
      result.items.insert(result.items.end(), items.begin(), items.end());
      result.pieces.push_back({first, static_cast<uint32_t>(result.items.size()), piece.added_id});
    }
    std::swap(pieces, result);
  }

 protected:
  // Appends the pieces and items that come of one piece.
  virtual void Write(ItemSpan piece, Pieces& result) const = 0;
};

enum class PrependScheme { kAlways, kFirst, kNever };

class Metaspace : public Rewrite {
 public:
  Metaspace(char32_t replacement, PrependScheme scheme, bool split)
      : replacement_(replacement), scheme_(scheme), split_(split) {}

  uint32_t growth() const override { return 2; }
  uint32_t ascii_growth() const override { return 2; }

 private:
  void Write(ItemSpan piece, Pieces& result) const override {
    Items& items = result.items;
    uint32_t first = static_cast<uint32_t>(items.size());
    const bool begins_so = piece[0].code == ' ' || piece[0].code == replacement_;
    const bool prepends = !begins_so && (scheme_ == PrependScheme::kAlways ||
                                         (scheme_ == PrependScheme::kFirst && piece[0].begin == 0));
    if (prepends) items.push_back({replacement_, piece[0].begin, piece[0].end});
    for (const Item& item : piece) {
      const uint32_t at = static_cast<uint32_t>(items.size());
      items.push_back(item);
      if (item.code == ' ') items.back().code = replacement_;
      if (split_ && items.back().code == replacement_ && at > first) {
        result.pieces.push_back({first, at});
        first = at;
      }
    }
    result.pieces.push_back({first, static_cast<uint32_t>(items.size())});
  }

  const char32_t replacement_;
  const PrependScheme scheme_;
  const bool split_;
};

class BytePieces : public Rewrite {
 public:
  BytePieces(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), words_(use_regex ? Gpt2Words() : nullptr) {}

  uint32_t growth() const override { return 5; }
  uint32_t ascii_growth() const override { return 2; }

 private:
  void Write(ItemSpan piece, Pieces& result) const override {
    Items prefixed;
    if (add_prefix_space_ && piece[0].code != ' ') {
      prefixed.reserve(piece.size() + 1);
      prefixed.push_back({U' ', piece[0].begin, piece[0].end});
      prefixed.insert(prefixed.end(), piece.begin(), piece.end());
      piece = prefixed;
    }
    std::vector<Match> matches;
    if (words_ != nullptr) {
      words_->Find(piece, matches);
    } else {
      matches.push_back({0, static_cast<uint32_t>(piece.size()), true});
    }
    for (const Match& match : matches) {
      const uint32_t first = static_cast<uint32_t>(result.items.size());
      ToByteCharacters(piece.subspan(match.first, match.last - match.first), result.items);
      result.pieces.push_back({first, static_cast<uint32_t>(result.items.size())});
    }
  }

  const bool add_prefix_space_;
  const std::unique_ptr<SplitPattern> words_;
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(uint32_t length) : length_(length) {}

  void Apply(Pieces& pieces) const override {
    std::vector<Piece> split;
    for (const Piece& piece : pieces.pieces) {
      if (!piece.is_text()) {
        split.push_back(piece);
        continue;
      }
      for (uint32_t first = piece.first; first < piece.last;) {
        const uint32_t last = first + std::min(length_, piece.last - first);
        split.push_back({first, last});
        first = last;
      }
    }
    pieces.pieces.swap(split);
  }

 private:
  const uint32_t length_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> steps)
      : steps_(std::move(steps)) {}

  void Apply(Pieces& pieces) const override {
    for (const auto& step : steps_) step->Apply(pieces);
  }
  uint32_t growth() const override {
    return Multiply([](const auto& step) { return step.growth(); });
  }
  uint32_t ascii_growth() const override {
    return Multiply([](const auto& step) { return step.ascii_growth(); });
  }

 private:
  template <typename Growth>
  uint32_t Multiply(Growth growth_of) const {
    uint64_t growth = 1;
    for (const auto& step : steps_) growth = std::min<uint64_t>(growth * growth_of(*step), 1 << 20);
    return static_cast<uint32_t>(growth);
  }

  const std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

std::unique_ptr<PreTokenizer> MakeSplit(std::unique_ptr<SplitPattern> pattern,
                                        SplitBehavior behavior, bool invert = false) {
  return std::make_unique<Split>(std::move(pattern), behavior, invert);
}

absl::StatusOr<SplitBehavior> LoadBehavior(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::string behavior, fields.String("behavior", "Isolated"));
  if (behavior == "Removed") return SplitBehavior::kRemoved;
  if (behavior == "Isolated") return SplitBehavior::kIsolated;
  if (behavior == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (behavior == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (behavior == "Contiguous") return SplitBehavior::kContiguous;
  return Unexpected(fields.PathOf("behavior"),
                    "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
                    *fields.Find("behavior"));
}

absl::StatusOr<std::unique_ptr<SplitPattern>> LoadPattern(const Fields& fields) {
  ASSIGN_OR_RETURN(const Fields pattern, fields.Object("pattern"));
  if (pattern.Find("Regex").has_value()) {
    ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
    return KnownPattern(regex, pattern.PathOf("Regex"));
  }
  ASSIGN_OR_RETURN(const std::string text, pattern.String("String"));
  if (text.empty() || text.size() > 64) {
    return Unexpected(pattern.PathOf("String"), "1..64 bytes", absl::StrCat(text.size()));
  }
  return Literal(ToCodes(text));
}

PreTokenizerOr LoadSplit(const Fields& fields) {
  ASSIGN_OR_RETURN(std::unique_ptr<SplitPattern> pattern, LoadPattern(fields));
  if (absl::StatusOr<JsonValue> given = fields.Get("behavior"); !given.ok()) return given.status();
  ASSIGN_OR_RETURN(const SplitBehavior behavior, LoadBehavior(fields));
  ASSIGN_OR_RETURN(const bool invert, fields.Bool("invert"));
  return MakeSplit(std::move(pattern), behavior, invert);
}

PreTokenizerOr LoadPunctuation(const Fields& fields) {
  ASSIGN_OR_RETURN(const SplitBehavior behavior, LoadBehavior(fields));
  return MakeSplit(FlaggedCharacters(kPunctuation), behavior);
}

PreTokenizerOr LoadDigits(const Fields& fields) {
  ASSIGN_OR_RETURN(const bool individual, fields.Bool("individual_digits"));
  return MakeSplit(FlaggedCharacters(kNumeric),
                   individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizerOr LoadMetaspace(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::string replacement, fields.String("replacement"));
  const std::u32string codes = ToCodes(replacement);
  if (codes.size() != 1) {
    return Unexpected(fields.PathOf("replacement"), "one character", *fields.Find("replacement"));
  }
  absl::StatusOr<std::string> scheme = fields.String("prepend_scheme", "always");
  absl::StatusOr<bool> prefix = fields.Bool("add_prefix_space", true);
  absl::StatusOr<bool> split = fields.Bool("split", true);
  for (const absl::Status& status : {scheme.status(), prefix.status(), split.status()}) {
    if (!status.ok()) return status;
  }
  const bool never = *scheme == "never";
  if (!never && *scheme != "always" && *scheme != "first") {
    return Unexpected(fields.PathOf("prepend_scheme"), "always, first or never",
                      *fields.Find("prepend_scheme"));
  }
  if (!*prefix && !never) {
    return Unexpected(fields.PathOf("prepend_scheme"), "never (add_prefix_space is false)",
                      *scheme);
  }
  return std::make_unique<Metaspace>(codes[0],
                                     never                ? PrependScheme::kNever
                                     : *scheme == "first" ? PrependScheme::kFirst
                                                          : PrependScheme::kAlways,
                                     *split);
}

PreTokenizerOr LoadBytes(const Fields& fields) {
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space"));
  ASSIGN_OR_RETURN(const bool regex, fields.Bool("use_regex", true));
  return std::make_unique<BytePieces>(prefix, regex);
}

PreTokenizerOr LoadDelimiter(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::string delimiter, fields.String("delimiter"));
  std::u32string codes = ToCodes(delimiter);
  if (codes.size() != 1) {
    return Unexpected(fields.PathOf("delimiter"), "one character", *fields.Find("delimiter"));
  }
  return MakeSplit(Literal(std::move(codes)), SplitBehavior::kRemoved);
}

PreTokenizerOr LoadFixedLength(const Fields& fields) {
  if (!fields.Find("length").has_value()) return std::make_unique<FixedLength>(5);
  ASSIGN_OR_RETURN(const uint32_t length, fields.Id("length"));
  if (length == 0) return Unexpected(fields.PathOf("length"), "1 or more", "0");
  return std::make_unique<FixedLength>(length);
}

PreTokenizerOr LoadPreSequence(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> list, fields.Array("pretokenizers"));
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (size_t i = 0; i < list.size(); ++i) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<PreTokenizer> step,
        LoadPreTokenizer(list[i], absl::StrCat(fields.PathOf("pretokenizers"), "[", i, "]")));
    steps.push_back(std::move(step));
  }
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

PreTokenizerOr LoadBertPieces(const Fields&) { return std::make_unique<BertPreTokenizer>(); }
PreTokenizerOr LoadWords(const Fields&) {
  return MakeSplit(WordsAndSymbols(), SplitBehavior::kRemoved, true);
}
PreTokenizerOr LoadWhitespaceSplit(const Fields&) {
  return MakeSplit(FlaggedCharacters(kWhitespace), SplitBehavior::kRemoved);
}

constexpr ComponentType<std::unique_ptr<PreTokenizer>> kPreTokenizers[] = {
    {"BertPreTokenizer", "", LoadBertPieces},
    {"Whitespace", "", LoadWords},
    {"WhitespaceSplit", "", LoadWhitespaceSplit},
    {"Punctuation", "behavior", LoadPunctuation},
    {"Digits", "individual_digits", LoadDigits},
    {"Split", "pattern,behavior,invert", LoadSplit},
    {"Metaspace", "replacement,prepend_scheme,split,add_prefix_space,str_rep", LoadMetaspace},
    {"ByteLevel", "add_prefix_space,trim_offsets,use_regex", LoadBytes},
    {"CharDelimiterSplit", "delimiter", LoadDelimiter},
    {"FixedLength", "length", LoadFixedLength},
    {"Sequence", "pretokenizers", LoadPreSequence},
};

}  // namespace

PreTokenizerOr LoadPreTokenizer(JsonValue json, const std::string& field) {
  if (json.is_null()) {
    return std::make_unique<PreTokenizerSequence>(std::vector<std::unique_ptr<PreTokenizer>>());
  }
  return LoadComponent(kPreTokenizers, json, field);
}

}  // namespace attendant::text
