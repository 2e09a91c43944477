#include "server/text/pre_tokenizer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/text/base/byte_characters.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/unicode.h"
#include "server/text/split_pattern.h"

namespace attendant::text {
namespace {

using PreTokenizerOr = absl::StatusOr<PreTokenizer>;

// Puts what `split` appends for a piece of text in its place.
template <typename SplitOne>
void SplitPieces(Pieces& pieces, SplitOne split_one) {
  std::vector<Piece> split;
  split.reserve(pieces.items.size() / 4 + pieces.pieces.size());
  for (const Piece& piece : pieces.pieces) {
    if (piece.is_text()) {
      split_one(piece, split);
    } else {
      split.push_back(piece);
    }
  }
  pieces.pieces.swap(split);
}

void SplitForBert(Pieces& pieces) {
  const uint16_t* flags = CodeFlags();
  SplitPieces(pieces, [&](const Piece& piece, std::vector<Piece>& split) {
    uint32_t first = piece.first;
    for (uint32_t i = piece.first; i < piece.last; ++i) {
      const uint16_t own = flags[pieces.items[i].code] & (kWhitespace | kPunctuation);
      if (own == 0) continue;
      if (i > first) split.push_back({first, i});
      if ((own & kWhitespace) == 0) split.push_back({i, i + 1});
      first = i + 1;
    }
    if (piece.last > first) split.push_back({first, piece.last});
  });
}

PreTokenizer Split(SplitPattern pattern, SplitBehavior behavior, bool invert = false) {
  return {[pattern = std::move(pattern), behavior, invert](Pieces& pieces) {
    std::vector<Match> matches;
    SplitPieces(pieces, [&](const Piece& piece, std::vector<Piece>& split) {
      matches.clear();
      const uint32_t size = piece.last - piece.first;
      pattern(ItemSpan(pieces.items).subspan(piece.first, size), matches);
      if (matches.empty()) matches.push_back({0, size, false});
      if (invert) {
        for (Match& match : matches) match.is_match = !match.is_match;
      }
      ApplyBehavior(behavior, matches);
      for (const Match& match : matches) {
        split.push_back({piece.first + match.first, piece.first + match.last});
      }
    });
  }};
}

// Writes each piece anew: `write` appends the pieces and items that come of one piece of text.
template <typename Write>
void Rewrite(Pieces& pieces, Write write) {
  Pieces result;
  result.items.reserve(pieces.items.size() + pieces.pieces.size());
  result.pieces.reserve(pieces.pieces.size());
  for (const Piece& piece : pieces.pieces) {
    const ItemSpan items = ItemSpan(pieces.items).subspan(piece.first, piece.last - piece.first);
    if (piece.is_text()) {
      write(items, result);
      continue;
    }
    const uint32_t first = static_cast<uint32_t>(result.items.size());
    result.items.insert(result.items.end(), items.begin(), items.end());
    result.pieces.push_back({first, static_cast<uint32_t>(result.items.size()), piece.added_id});
  }
  std::swap(pieces, result);
}

// The pieces to which Metaspace prepends its replacement: all, the text's first one, or none.
enum class PrependScheme { kAlways, kFirst, kNever };

PreTokenizer Metaspace(char32_t replacement, PrependScheme scheme, bool split) {
  const auto write = [=](ItemSpan piece, Pieces& result) {
    Items& items = result.items;
    uint32_t first = static_cast<uint32_t>(items.size());
    const bool begins_so = piece[0].code == ' ' || piece[0].code == replacement;
    const bool prepends = !begins_so && (scheme == PrependScheme::kAlways ||
                                         (scheme == PrependScheme::kFirst && piece[0].begin == 0));
    if (prepends) items.push_back({replacement, piece[0].begin, piece[0].end});
    for (const Item& item : piece) {
      const uint32_t at = static_cast<uint32_t>(items.size());
      items.push_back(item);
      if (item.code == ' ') items.back().code = replacement;
      if (split && items.back().code == replacement && at > first) {
        result.pieces.push_back({first, at});
        first = at;
      }
    }
    result.pieces.push_back({first, static_cast<uint32_t>(items.size())});
  };
  return {[write](Pieces& pieces) { Rewrite(pieces, write); }, 2, 2};
}

PreTokenizer BytePieces(bool add_prefix_space, SplitPattern words) {
  const auto write = [add_prefix_space, words = std::move(words)](ItemSpan piece, Pieces& result) {
    Items prefixed;
    if (add_prefix_space && piece[0].code != ' ') {
      prefixed.reserve(piece.size() + 1);
      prefixed.push_back({U' ', piece[0].begin, piece[0].end});
      prefixed.insert(prefixed.end(), piece.begin(), piece.end());
      piece = prefixed;
    }
    std::vector<Match> matches;
    words(piece, matches);
    for (const Match& match : matches) {
      const uint32_t first = static_cast<uint32_t>(result.items.size());
      ToByteCharacters(piece.subspan(match.first, match.last - match.first), result.items);
      result.pieces.push_back({first, static_cast<uint32_t>(result.items.size())});
    }
  };
  return {[write](Pieces& pieces) { Rewrite(pieces, write); }, 5, 2};
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

PreTokenizerOr LoadSplit(const Fields& fields) {
  ASSIGN_OR_RETURN(SplitPattern pattern, LoadPattern(fields));
  if (absl::StatusOr<JsonValue> given = fields.Get("behavior"); !given.ok()) return given.status();
  ASSIGN_OR_RETURN(const SplitBehavior behavior, LoadBehavior(fields));
  ASSIGN_OR_RETURN(const bool invert, fields.Bool("invert"));
  return Split(std::move(pattern), behavior, invert);
}

PreTokenizerOr LoadPunctuation(const Fields& fields) {
  ASSIGN_OR_RETURN(const SplitBehavior behavior, LoadBehavior(fields));
  return Split(FlaggedCharacters(kPunctuation), behavior);
}

PreTokenizerOr LoadDigits(const Fields& fields) {
  ASSIGN_OR_RETURN(const bool individual, fields.Bool("individual_digits"));
  return Split(FlaggedCharacters(kNumeric),
               individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizerOr LoadMetaspace(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::string replacement, fields.String("replacement"));
  const std::u32string codes = ToCodes(replacement);
  if (codes.size() != 1) {
    return Unexpected(fields.PathOf("replacement"), "one character", *fields.Find("replacement"));
  }
  ASSIGN_OR_RETURN(const std::string scheme, fields.String("prepend_scheme", "always"));
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space", true));
  ASSIGN_OR_RETURN(const bool split, fields.Bool("split", true));
  const bool never = scheme == "never";
  if (!never && scheme != "always" && scheme != "first") {
    return Unexpected(fields.PathOf("prepend_scheme"), "always, first or never",
                      *fields.Find("prepend_scheme"));
  }
  if (!prefix && !never) {
    return Unexpected(fields.PathOf("prepend_scheme"), "never (add_prefix_space is false)", scheme);
  }
  return Metaspace(codes[0],
                   never               ? PrependScheme::kNever
                   : scheme == "first" ? PrependScheme::kFirst
                                       : PrependScheme::kAlways,
                   split);
}

PreTokenizerOr LoadBytes(const Fields& fields) {
  ASSIGN_OR_RETURN(const bool prefix, fields.Bool("add_prefix_space"));
  ASSIGN_OR_RETURN(const bool regex, fields.Bool("use_regex", true));
  return BytePieces(prefix, regex ? Gpt2Words() : RunsOf(SIZE_MAX));
}

PreTokenizerOr LoadDelimiter(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::string delimiter, fields.String("delimiter"));
  std::u32string codes = ToCodes(delimiter);
  if (codes.size() != 1) {
    return Unexpected(fields.PathOf("delimiter"), "one character", *fields.Find("delimiter"));
  }
  return Split(Literal(std::move(codes)), SplitBehavior::kRemoved);
}

PreTokenizerOr LoadFixedLength(const Fields& fields) {
  uint32_t length = 5;
  if (fields.Find("length").has_value()) {
    ASSIGN_OR_RETURN(length, fields.Id("length"));
  }
  if (length == 0) return Unexpected(fields.PathOf("length"), "1 or more", "0");
  return Split(RunsOf(length), SplitBehavior::kIsolated);
}

PreTokenizerOr LoadPreSequence(const Fields& fields) {
  ASSIGN_OR_RETURN(std::vector<PreTokenizer> steps,
                   LoadEach<PreTokenizer>(fields, "pretokenizers", LoadPreTokenizer));
  const auto product = [](uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{a} * b, 1 << 20));
  };
  PreTokenizer all;
  for (const PreTokenizer& step : steps) {
    all.growth = product(all.growth, step.growth);
    all.ascii_growth = product(all.ascii_growth, step.ascii_growth);
  }
  all.apply = [steps = std::move(steps)](Pieces& pieces) {
    for (const PreTokenizer& step : steps) step.apply(pieces);
  };
  return all;
}

PreTokenizerOr LoadBertPieces(const Fields&) { return PreTokenizer{SplitForBert}; }
PreTokenizerOr LoadWords(const Fields&) {
  return Split(WordsAndSymbols(), SplitBehavior::kRemoved, true);
}
PreTokenizerOr LoadWhitespaceSplit(const Fields&) {
  return Split(FlaggedCharacters(kWhitespace), SplitBehavior::kRemoved);
}

constexpr ComponentType<PreTokenizer> kPreTokenizers[] = {
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

PreTokenizerOr LoadPreTokenizer(const std::optional<JsonValue>& json, const std::string& field) {
  if (!json || json->is_null()) return PreTokenizer{};
  return LoadComponent(kPreTokenizers, *json, field);
}

}  // namespace attendant::text
