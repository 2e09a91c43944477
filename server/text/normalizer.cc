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
#include "server/text/replace.h"

namespace attendant::text {
namespace {

using NormalizerOr = absl::StatusOr<std::unique_ptr<Normalizer>>;

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

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertOptions& options) : options_(options) {}

  void Apply(Items& items) const override {
    const uint16_t* flags = CodeFlags();
    if (options_.clean_text) {
      EraseIf(items, [&](const Item& item) { return HasFlag(flags, item.code, kRemoved); });
    }
    uint16_t all = 0;
    for (Item& item : items) {
      if (options_.clean_text && HasFlag(flags, item.code, kWhitespace)) item.code = U' ';
      all |= flags[item.code];
      if (IsHangulSyllable(item.code)) all |= kCanonical;
    }
    if (options_.handle_chinese_chars && (all & kCjk) != 0) SpaceIdeographs(items);
    if (options_.strip_accents && (all & (kCanonical | kNonspacingMark | kReordered)) != 0) {
      Normalize({}, items);
      EraseIf(items, [&](const Item& item) { return HasFlag(flags, item.code, kNonspacingMark); });
    }
    if (options_.lowercase) Lowercase(items);
  }

  // Ideographs get two spaces; others decompose, into four at most.
  uint32_t growth() const override { return options_.strip_accents ? 4 : 3; }

 private:
  static void SpaceIdeographs(Items& items) {
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

  const BertOptions options_;
};

class FormNormalizer : public Normalizer {
 public:
  explicit FormNormalizer(const NormalForm& form) : form_(form) {}
  void Apply(Items& items) const override { Normalize(form_, items); }
  uint32_t growth() const override { return form_.compatible ? 18 : 4; }

 private:
  const NormalForm form_;
};

class StripAccents : public Normalizer {
 public:
  void Apply(Items& items) const override {
    EraseIf(items, [](const Item& item) { return HasFlag(CodeFlags(), item.code, kMark); });
  }
};

class LowercaseNormalizer : public Normalizer {
 public:
  void Apply(Items& items) const override { Lowercase(items); }
  uint32_t growth() const override { return 2; }
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void Apply(Items& items) const override {
    const auto is_kept = [](const Item& item) {
      return !HasFlag(CodeFlags(), item.code, kWhitespace);
    };
    if (right_) {
      items.erase(std::find_if(items.rbegin(), items.rend(), is_kept).base(), items.end());
    }
    if (left_) items.erase(items.begin(), std::find_if(items.begin(), items.end(), is_kept));
  }

 private:
  const bool left_, right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::u32string text) : text_(std::move(text)) {}

  void Apply(Items& items) const override {
    if (items.empty()) return;
    Items before;
    for (const char32_t code : text_) before.push_back({code, items[0].begin, items[0].end});
    items.insert(items.begin(), before.begin(), before.end());
  }
  // Of a text of one item.
  uint32_t growth() const override { return 1 + static_cast<uint32_t>(text_.size()); }

 private:
  const std::u32string text_;
};

class CharsmapNormalizer : public Normalizer {
 public:
  explicit CharsmapNormalizer(Charsmap map) : map_(std::move(map)) {}
  void Apply(Items& items) const override { map_.Apply(items); }
  uint32_t growth() const override { return map_.growth(); }
  size_t memory_bytes() const override { return map_.heap_bytes(); }

 private:
  const Charsmap map_;
};

class Nmt : public Normalizer {
 public:
  void Apply(Items& items) const override {
    EraseIf(items, [](const Item& item) {
      const char32_t c = item.code;
      return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
             c == 0x9F;
    });
    for (Item& item : items) {
      if (IsSpace(item.code)) item.code = U' ';
    }
  }

 private:
  static bool IsSpace(char32_t c) {
    constexpr char32_t kSpaces[] = {0x9,    0xA,    0xC,    0xD,    0x1680,
                                    0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
    return (c >= 0x200B && c <= 0x200F) ||
           std::find(std::begin(kSpaces), std::end(kSpaces), c) != std::end(kSpaces);
  }
};

class ByteLevelNormalizer : public Normalizer {
 public:
  void Apply(Items& items) const override {
    Items result;
    result.reserve(items.size());
    ToByteCharacters(items, result);
    items.swap(result);
  }
  uint32_t growth() const override { return 4; }
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps)
      : steps_(std::move(steps)) {}

  void Apply(Items& items) const override {
    for (const auto& step : steps_) step->Apply(items);
  }
  uint32_t growth() const override {
    uint64_t growth = 1;
    for (const auto& step : steps_) growth = std::min<uint64_t>(growth * step->growth(), 1 << 20);
    return static_cast<uint32_t>(growth);
  }
  size_t memory_bytes() const override {
    size_t bytes = 0;
    for (const auto& step : steps_) bytes += step->memory_bytes();
    return bytes;
  }

 private:
  const std::vector<std::unique_ptr<Normalizer>> steps_;
};

NormalizerOr LoadSequence(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> list, fields.Array("normalizers"));
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (size_t i = 0; i < list.size(); ++i) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<Normalizer> step,
        LoadNormalizer(list[i], absl::StrCat(fields.PathOf("normalizers"), "[", i, "]")));
    steps.push_back(std::move(step));
  }
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

NormalizerOr LoadBert(const Fields& fields) {
  absl::StatusOr<bool> clean = fields.Bool("clean_text");
  absl::StatusOr<bool> chinese = fields.Bool("handle_chinese_chars");
  absl::StatusOr<bool> lowercase = fields.Bool("lowercase");
  for (const absl::Status& status : {clean.status(), chinese.status(), lowercase.status()}) {
    if (!status.ok()) return status;
  }
  ASSIGN_OR_RETURN(const bool strip, fields.Bool("strip_accents", *lowercase));
  return std::make_unique<BertNormalizer>(BertOptions{*clean, *chinese, strip, *lowercase});
}

NormalizerOr LoadStrip(const Fields& fields) {
  ASSIGN_OR_RETURN(const bool left, fields.Bool("strip_left"));
  ASSIGN_OR_RETURN(const bool right, fields.Bool("strip_right"));
  return std::make_unique<Strip>(left, right);
}

NormalizerOr LoadPrepend(const Fields& fields) {
  ASSIGN_OR_RETURN(std::u32string text, LoadContent(fields, "prepend"));
  return std::make_unique<Prepend>(std::move(text));
}

NormalizerOr LoadCharsmap(const Fields& fields) {
  ASSIGN_OR_RETURN(const std::string base64, fields.String("precompiled_charsmap"));
  ASSIGN_OR_RETURN(Charsmap map, Charsmap::Parse(base64, fields.PathOf("precompiled_charsmap")));
  return std::make_unique<CharsmapNormalizer>(std::move(map));
}

template <typename Made>
NormalizerOr LoadPlain(const Fields&) {
  return std::make_unique<Made>();
}

template <bool kCompose, bool kCompatible>
NormalizerOr LoadForm(const Fields&) {
  return std::make_unique<FormNormalizer>(NormalForm{kCompose, kCompatible});
}

constexpr ComponentType<std::unique_ptr<Normalizer>> kKinds[] = {
    {"BertNormalizer", "clean_text,handle_chinese_chars,strip_accents,lowercase", LoadBert},
    {"NFC", "", LoadForm<true, false>},
    {"NFD", "", LoadForm<false, false>},
    {"NFKC", "", LoadForm<true, true>},
    {"NFKD", "", LoadForm<false, true>},
    {"StripAccents", "", LoadPlain<StripAccents>},
    {"Lowercase", "", LoadPlain<LowercaseNormalizer>},
    {"Strip", "strip_left,strip_right", LoadStrip},
    {"Replace", "pattern,content", LoadReplace},
    {"Prepend", "prepend", LoadPrepend},
    {"Precompiled", "precompiled_charsmap", LoadCharsmap},
    {"Nmt", "", LoadPlain<Nmt>},
    {"ByteLevel", "", LoadPlain<ByteLevelNormalizer>},
    {"Sequence", "normalizers", LoadSequence},
};

}  // namespace

NormalizerOr LoadNormalizer(JsonValue json, const std::string& field) {
  if (json.is_null()) {
    return std::make_unique<NormalizerSequence>(std::vector<std::unique_ptr<Normalizer>>());
  }
  return LoadComponent(kKinds, json, field);
}

std::unique_ptr<Normalizer> LowercaseBefore(std::unique_ptr<Normalizer> next) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  steps.push_back(std::make_unique<LowercaseNormalizer>());
  steps.push_back(std::move(next));
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

CodeGrowth::CodeGrowth(const Normalizer& normalizer)
    : normalizer_(normalizer), known_(normalizer.growth() > 1 ? 0x10000 : 0) {}

uint32_t CodeGrowth::Of(char32_t code) const {
  if (code >= known_.size()) return normalizer_.growth();
  const uint8_t known = known_[code].load(std::memory_order_relaxed);
  if (known > 0) return known;
  const uint32_t growth = Measure(code);
  if (growth <= 0xFF) {
    known_[code].store(static_cast<uint8_t>(growth), std::memory_order_relaxed);
  }
  return growth;
}

uint32_t CodeGrowth::Measure(char32_t code) const {
  // Of the steps to a canonical form; most of what they add is composed or removed again.
  constexpr uint32_t kDecomposed = 4;
  Items items = {{code, 0, Utf8Size(code)}};
  normalizer_.Apply(items);
  const uint32_t made = std::max<uint32_t>(1, static_cast<uint32_t>(items.size()));
  const bool decomposes = IsHangulSyllable(code) || HasFlag(CodeFlags(), code, kCanonical) ||
                          HasFlag(CodeFlags(), code, kCompatible);
  return decomposes ? std::max(made, std::min(kDecomposed, normalizer_.growth())) : made;
}

}  // namespace attendant::text
