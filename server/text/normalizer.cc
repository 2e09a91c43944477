#include "server/text/normalizer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/base/byte_characters.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/unicode.h"
#include "server/text/charsmap.h"
#include "server/text/normal_form.h"
#include "server/text/split_pattern.h"

namespace attendant::text {
namespace {

using NormalizerOr = absl::StatusOr<Normalizer>;

template <typename Predicate>
void EraseIf(Items& items, Predicate predicate) {
  items.erase(std::remove_if(items.begin(), items.end(), predicate), items.end());
}

void Lowercase(Items& items) {
  // U+0130 alone becomes two characters: i and a dot above it.
  const auto doubles = std::count_if(items.begin(), items.end(),
                                     [](const Item& item) { return item.code == 0x130; });
  if (doubles == 0) {
    for (Item& item : items) item.code = LowerCase(item.code);
    return;
  }
  Items result;
  result.reserve(items.size() + doubles);
  for (const Item& item : items) {
    result.push_back(item);
    result.back().code = item.code == 0x130 ? U'i' : LowerCase(item.code);
    if (item.code == 0x130) result.push_back({0x307, item.begin, item.end});
  }
  items.swap(result);
}

struct BertOptions {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};

void SpaceIdeographs(Items& items) {
  Items spaced;
  spaced.reserve(items.size() * 3);
  for (const Item& item : items) {
    const bool is_cjk = HasFlag(CodeFlags(), item.code, kCjk);
    const Item space = {U' ', item.begin, item.end};
    if (is_cjk) spaced.push_back(space);
    spaced.push_back(item);
    if (is_cjk) spaced.push_back(space);
  }
  items.swap(spaced);
}

void NormalizeForBert(const BertOptions& options, Items& items) {
  const uint16_t* flags = CodeFlags();
  if (options.clean_text) {
    EraseIf(items, [&](const Item& item) { return HasFlag(flags, item.code, kRemoved); });
  }
  uint16_t all = 0;
  for (Item& item : items) {
    if (options.clean_text && HasFlag(flags, item.code, kWhitespace)) item.code = U' ';
    all |= flags[item.code];
    if (IsHangulSyllable(item.code)) all |= kCanonical;
  }
  if (options.handle_chinese_chars && (all & kCjk) != 0) SpaceIdeographs(items);
  if (options.strip_accents && (all & (kCanonical | kNonspacingMark | kReordered)) != 0) {
    Normalize({}, items);
    EraseIf(items, [&](const Item& item) { return HasFlag(flags, item.code, kNonspacingMark); });
  }
  if (options.lowercase) Lowercase(items);
}

void StripAccents(Items& items) {
  EraseIf(items, [](const Item& item) { return HasFlag(CodeFlags(), item.code, kMark); });
}

bool IsNmtSpace(char32_t c) {
  constexpr char32_t kSpaces[] = {0x9,    0xA,    0xC,    0xD,    0x1680,
                                  0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  return (c >= 0x200B && c <= 0x200F) ||
         std::find(std::begin(kSpaces), std::end(kSpaces), c) != std::end(kSpaces);
}

void NormalizeAsNmt(Items& items) {
  EraseIf(items, [](const Item& item) {
    const char32_t c = item.code;
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
  });
  for (Item& item : items) {
    if (IsNmtSpace(item.code)) item.code = U' ';
  }
}

void ReplaceBytes(Items& items) {
  Items result;
  result.reserve(items.size());
  ToByteCharacters(items, result);
  items.swap(result);
}

Normalizer InTurn(std::vector<Normalizer> steps) {
  Normalizer all;
  for (const Normalizer& step : steps) {
    const uint64_t growth = uint64_t{all.growth} * step.growth;
    all.growth = static_cast<uint32_t>(std::min<uint64_t>(growth, 1 << 20));
  }
  all.apply = [steps = std::move(steps)](Items& items) {
    for (const Normalizer& step : steps) step.apply(items);
  };
  return all;
}

NormalizerOr LoadSequence(const Fields& fields) {
  ASSIGN_OR_RETURN(std::vector<Normalizer> steps,
                   LoadEach<Normalizer>(fields, "normalizers", LoadNormalizer));
  return InTurn(std::move(steps));
}

NormalizerOr LoadBert(const Fields& fields) {
  BertOptions options;
  ASSIGN_OR_RETURN(options.clean_text, fields.Bool("clean_text"));
  ASSIGN_OR_RETURN(options.handle_chinese_chars, fields.Bool("handle_chinese_chars"));
  ASSIGN_OR_RETURN(options.lowercase, fields.Bool("lowercase"));
  ASSIGN_OR_RETURN(options.strip_accents, fields.Bool("strip_accents", options.lowercase));
  // Ideographs get two spaces; others decompose, into four at most.
  return Normalizer{[options](Items& items) { NormalizeForBert(options, items); },
                    options.strip_accents ? 4u : 3u};
}

NormalizerOr LoadStrip(const Fields& fields) {
  ASSIGN_OR_RETURN(const bool left, fields.Bool("strip_left"));
  ASSIGN_OR_RETURN(const bool right, fields.Bool("strip_right"));
  return Normalizer{[left, right](Items& items) {
    const auto is_kept = [](const Item& item) {
      return !HasFlag(CodeFlags(), item.code, kWhitespace);
    };
    if (right) items.erase(std::find_if(items.rbegin(), items.rend(), is_kept).base(), items.end());
    if (left) items.erase(items.begin(), std::find_if(items.begin(), items.end(), is_kept));
  }};
}

// Loads a replacement text of at most 64 bytes.
absl::StatusOr<std::u32string> LoadContent(const Fields& fields, absl::string_view key) {
  constexpr size_t kMaxContent = 64;
  ASSIGN_OR_RETURN(const std::string content, fields.String(key));
  if (content.size() > kMaxContent) {
    return Unexpected(fields.PathOf(key), absl::StrCat("at most ", kMaxContent, " bytes"),
                      absl::StrCat(content.size()));
  }
  return ToCodes(content);
}

void Replace(const SplitPattern& pattern, const std::u32string& content, Items& items) {
  std::vector<Match> matches;
  if (!items.empty()) pattern(items, matches);
  if (std::none_of(matches.begin(), matches.end(),
                   [](const Match& match) { return match.is_match; })) {
    return;
  }
  Items result;
  for (const Match& match : matches) {
    if (!match.is_match) {
      result.insert(result.end(), items.begin() + match.first, items.begin() + match.last);
      continue;
    }
    const Item& last = items[match.last - 1];
    for (const char32_t code : content) result.push_back({code, last.begin, last.end});
  }
  items.swap(result);
}

NormalizerOr LoadReplace(const Fields& fields) {
  ASSIGN_OR_RETURN(std::u32string content, LoadContent(fields, "content"));
  ASSIGN_OR_RETURN(SplitPattern pattern, LoadPattern(fields));
  const auto growth = std::max<uint32_t>(1, static_cast<uint32_t>(content.size()));
  return Normalizer{[pattern = std::move(pattern), content = std::move(content)](Items& items) {
                      Replace(pattern, content, items);
                    },
                    growth};
}

NormalizerOr LoadPrepend(const Fields& fields) {
  ASSIGN_OR_RETURN(std::u32string text, LoadContent(fields, "prepend"));
  // The original duplicates characters then.
  if (text.empty()) return Unexpected(fields.PathOf("prepend"), "1..64 bytes", "0");
  const auto growth = 1 + static_cast<uint32_t>(text.size());  // of a text of one item
  return Normalizer{[text = std::move(text)](Items& items) {
                      if (items.empty()) return;
                      Items before;
                      for (const char32_t code : text) {
                        before.push_back({code, items[0].begin, items[0].end});
                      }
                      items.insert(items.begin(), before.begin(), before.end());
                    },
                    growth};
}

NormalizerOr LoadCharsmap(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::string base64, fields.String("precompiled_charsmap"));
  ASSIGN_OR_RETURN(Charsmap map, Charsmap::Parse(base64, fields.PathOf("precompiled_charsmap")));
  const uint32_t growth = map.growth();
  return Normalizer{[map = std::move(map)](Items& items) { map.Apply(items); }, growth};
}

template <void (*kApply)(Items&), uint32_t kGrowth = 1>
NormalizerOr LoadPlain(const Fields&) {
  return Normalizer{kApply, kGrowth};
}

template <bool kCompose, bool kCompatible>
NormalizerOr LoadForm(const Fields&) {
  return Normalizer{[](Items& items) {
                      Normalize({kCompose, kCompatible}, items);
                    },
                    kCompatible ? 18 : 4};
}

constexpr ComponentType<Normalizer> kKinds[] = {
    {"BertNormalizer", "clean_text,handle_chinese_chars,strip_accents,lowercase", LoadBert},
    {"NFC", "", LoadForm<true, false>},
    {"NFD", "", LoadForm<false, false>},
    {"NFKC", "", LoadForm<true, true>},
    {"NFKD", "", LoadForm<false, true>},
    {"StripAccents", "", LoadPlain<StripAccents>},
    {"Lowercase", "", LoadPlain<Lowercase, 2>},
    {"Strip", "strip_left,strip_right", LoadStrip},
    {"Replace", "pattern,content", LoadReplace},
    {"Prepend", "prepend", LoadPrepend},
    {"Precompiled", "precompiled_charsmap", LoadCharsmap},
    {"Nmt", "", LoadPlain<NormalizeAsNmt>},
    {"ByteLevel", "", LoadPlain<ReplaceBytes, 4>},
    {"Sequence", "normalizers", LoadSequence},
};

}  // namespace

NormalizerOr LoadNormalizer(const std::optional<JsonValue>& json, const std::string& field) {
  if (!json || json->is_null()) return Normalizer{};
  return LoadComponent(kKinds, *json, field);
}

Normalizer LowercaseBefore(Normalizer next) {
  std::vector<Normalizer> steps = {{Lowercase, 2}};
  steps.push_back(std::move(next));
  return InTurn(std::move(steps));
}

CodeGrowth::CodeGrowth(const Normalizer& normalizer)
    : normalizer_(normalizer), known_(normalizer.growth > 1 ? 0x10000 : 0) {}

uint32_t CodeGrowth::Of(char32_t code) const {
  if (code >= known_.size()) return normalizer_.growth;
  const uint8_t known = known_[code].load(std::memory_order_relaxed);
  if (known > 0) return known;
  const uint32_t growth = Measure(code);
  if (growth <= 0xFF) {
    known_[code].store(static_cast<uint8_t>(growth), std::memory_order_relaxed);
  }
  return growth;
}

uint32_t CodeGrowth::Measure(char32_t code) const {
  // Intermediate items of a canonical form; most are composed or removed again.
  constexpr uint32_t kDecomposed = 4;
  Items items = {{code, 0, Utf8Size(code)}};
  normalizer_.apply(items);
  const uint32_t made = std::max<uint32_t>(1, static_cast<uint32_t>(items.size()));
  const bool decomposes = IsHangulSyllable(code) || HasFlag(CodeFlags(), code, kCanonical) ||
                          HasFlag(CodeFlags(), code, kCompatible);
  return decomposes ? std::max(made, std::min(kDecomposed, normalizer_.growth)) : made;
}

}  // namespace attendant::text
