// What queries see of their scores; included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_SIGHT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_SIGHT_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_SIGHT_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_SIGHT_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/seen_keys.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// Of a panel of queries in a sequence with a window, one key after the other. Places are compared
// as float32, which is exact below 2^24. Borrows both.
template <int kVectors>
class Sight {
 public:
  // For keys from first_key on.
  Sight(const AttentionBlock& block, const SeenKeys& seen, const QueryPanel& panel,
        int64_t first_key)
      : seen_(seen) {
    const FloatTag d;
    HWY_ALIGN float places[Width<kVectors>()], repeats[Width<kVectors>()];
    const float repeat = std::log1p(static_cast<float>(block.pattern.first_repeats));
    const int64_t first_place = seen.PlaceOfKey(first_key);
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      const int64_t query = block.first_query + panel.first + std::min(i, panel.count - 1);
      const int64_t place = seen.PlaceOfQuery(query);
      const bool is_global = seen.IsGlobal(place);
      places[i] = static_cast<float>(place);
      widths_[i] = is_global ? kInfinity : static_cast<float>(block.window);
      repeats[i] = is_global ? 0.0f : repeat;
      listed_[i] = block.pattern.listed.Between({place, first_place}, {place + 1, 0});
      any_listed_ = any_listed_ || !listed_[i].empty();
    }
    for (int v = 0; v < kVectors; ++v) {
      places_[v] = hn::Load(d, places + v * kLanes);
      windows_[v] = hn::LoadU(d, widths_ + v * kLanes);
      repeats_[v] = hn::Load(d, repeats + v * kLanes);
    }
  }

  // Keys come in ascending order.
  void LookAt(int64_t key) {
    const int64_t place = seen_.PlaceOfKey(key);
    if (place == place_) return;
    place_ = place;
    is_global_ = seen_.IsGlobal(place);
    if (any_listed_) OpenListed();
  }

  // The scores of vector v of queries and the key that is looked at; minus infinity if not seen.
  Floats Apply(int v, Floats score) const {
    const FloatTag d;
    if (place_ == 0) score = hn::Add(score, repeats_[v]);
    if (is_global_) return score;
    const Floats distance = hn::Abs(hn::Sub(hn::Set(d, static_cast<float>(place_)), places_[v]));
    return hn::IfThenElse(hn::Gt(distance, windows_[v]), hn::Set(d, -kInfinity), score);
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  // The windows of those that list the place reach any key.
  void OpenListed() {
    HWY_ALIGN float windows[Width<kVectors>()];
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      absl::Span<const BlockPair>& listed = listed_[i];
      while (!listed.empty() && listed.front().key < place_) listed.remove_prefix(1);
      const bool lists = !listed.empty() && listed.front().key == place_;
      windows[i] = lists ? kInfinity : widths_[i];
    }
    for (int v = 0; v < kVectors; ++v) windows_[v] = hn::Load(FloatTag(), windows + v * kLanes);
  }

  const SeenKeys& seen_;
  Floats places_[kVectors];   // of the queries
  Floats windows_[kVectors];  // infinite if the query is global, or lists the place
  Floats repeats_[kVectors];  // what keys of place 0 get for counting more than once
  int64_t place_ = -1;        // of the key
  bool is_global_ = false;
  // Of each query: its window whatever it lists, and what it lists from the place on.
  float widths_[Width<kVectors>()];
  absl::Span<const BlockPair> listed_[Width<kVectors>()];
  bool any_listed_ = false;
};

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // ATTENDANT_ENGINE_KERNELS_SIGHT_INL_H_
