#include "server/text/normal_form.h"

#include <algorithm>

#include "server/text/base/unicode.h"

namespace attendant::text {
namespace {

struct ClassedChange {
  Change change;
  uint8_t combining_class;
};

std::vector<ClassedChange> Decompose(const Items& items, bool compatible) {
  std::vector<ClassedChange> changes;
  size_t sorted = 0;
  // Puts the marks since the last other character in the order of their classes.
  const auto sort_marks = [&] {
    if (changes.size() - sorted > 1) {
      std::stable_sort(changes.begin() + sorted, changes.end(),
                       [](const ClassedChange& a, const ClassedChange& b) {
                         return a.combining_class < b.combining_class;
                       });
    }
    sorted = changes.size();
  };
  const auto push = [&](char32_t code, int32_t shift) {
    const uint8_t combining_class = CombiningClass(code);
    if (combining_class == 0) sort_marks();
    changes.push_back({{code, shift}, combining_class});
    if (combining_class == 0) sorted = changes.size();
  };
  for (const Item& item : items) {
    if (IsHangulSyllable(item.code)) {
      const char32_t index = item.code - kHangulBase;
      push(kHangulL + index / (kHangulVs * kHangulTs), 0);
      push(kHangulV + index % (kHangulVs * kHangulTs) / kHangulTs, 1);
      if (index % kHangulTs != 0) push(kHangulT + index % kHangulTs, 1);
      continue;
    }
    const absl::Span<const int32_t> parts = Decomposition(item.code, compatible);
    if (parts.empty()) push(item.code, 0);
    for (size_t i = 0; i < parts.size(); ++i) push(parts[i], i == 0 ? 0 : 1);
  }
  sort_marks();
  return changes;
}

std::vector<Change> ComposeChanges(const std::vector<ClassedChange>& decomposed) {
  std::vector<Change> composed;
  composed.reserve(decomposed.size());
  int64_t starter = -1;    // where in `composed` the last character of class 0 is
  uint8_t last_class = 0;  // of the marks kept after the starter
  for (const auto& [change, combining_class] : decomposed) {
    if (starter >= 0 && (last_class == 0 || last_class < combining_class)) {
      Change& base = composed[starter];
      if (const char32_t code = Compose(base.code, change.code); code != 0) {
        base = {code, base.shift + change.shift - 1};
        continue;
      }
    }
    if (combining_class == 0) starter = static_cast<int64_t>(composed.size());
    last_class = combining_class;
    composed.push_back(change);
  }
  return composed;
}

void NormalizeStretch(const NormalForm& form, Items& items) {
  const std::vector<ClassedChange> decomposed = Decompose(items, form.compatible);
  if (form.compose) return ApplyChanges(ComposeChanges(decomposed), items);
  std::vector<Change> changes;
  changes.reserve(decomposed.size());
  for (const ClassedChange& classed : decomposed) changes.push_back(classed.change);
  ApplyChanges(changes, items);
}

}  // namespace

void ApplyChanges(const std::vector<Change>& changes, Items& items) {
  Items result;
  result.reserve(changes.size());
  size_t next = 0;
  for (const Change& change : changes) {
    if (change.shift > 0) {
      const Item before = next == 0 ? Item{0, 0, 0} : items[next - 1];
      result.push_back({change.code, before.begin, before.end});
      continue;
    }
    const Item& replaced = items[std::min(next, items.size() - 1)];
    result.push_back({change.code, replaced.begin, replaced.end});
    next = std::min(next + 1 + static_cast<size_t>(-change.shift), items.size());
  }
  items.swap(result);
}

void Normalize(const NormalForm& form, Items& items) {
  // Below these, no character decomposes, or it is composed again; and none is composed with what
  // is before it. So only stretches of others, each with the character before it, are looked at.
  const char32_t simple = form.compatible ? 0xA0 : form.compose ? 0x300 : 0xC0;
  const auto is_simple = [&](const Item& item) { return item.code < simple; };
  auto next = std::find_if_not(items.begin(), items.end(), is_simple);
  if (next == items.end()) return;
  Items result, stretch;
  result.reserve(items.size() + items.size() / 4);
  auto copied = items.begin();
  while (next != items.end()) {
    const auto first = next == items.begin() || next == copied ? next : next - 1;
    const auto last = std::find_if(next, items.end(), is_simple);
    result.insert(result.end(), copied, first);
    stretch.assign(first, last);
    NormalizeStretch(form, stretch);
    result.insert(result.end(), stretch.begin(), stretch.end());
    copied = last;
    next = std::find_if_not(last, items.end(), is_simple);
  }
  result.insert(result.end(), copied, items.end());
  items.swap(result);
}

}  // namespace attendant::text
