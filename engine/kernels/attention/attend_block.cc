#include <algorithm>
#include <limits>
#include <optional>

#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/isa.h"

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/attend_block.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/attention/amx_products-inl.h"
#include "engine/kernels/attention/packing-inl.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/attention/score_terms-inl.h"
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;

constexpr int64_t kFloatsPerCacheLine = 16;

// Returns the number that is subtracted from exponents: the maximum, or 0 if all keys so far are
// masked, because 2^(-inf - 0) is 0 but -inf - -inf is NaN.
HWY_INLINE Floats Anchor(Floats maximum) {
  return hn::IfThenZeroElse(hn::Eq(maximum, hn::Set(FloatTag(), kMinusInfinity)), maximum);
}

constexpr int64_t RoundDown(int64_t value, int64_t multiple) { return value - value % multiple; }

// A run of a head's block of queries over all keys. Scores are transposed, [keys, queries], so that
// each query has its own lane, and the softmax needs neither sums across lanes nor partial vectors.
template <class Products>
class Run {
 public:
  Run(const AttentionBlock& block, const AttentionScratch& scratch)
      : block_(block),
        scratch_(scratch),
        products_(block, scratch),
        visible_(block),
        terms_(block, scratch, visible_),
        exponent_scale_(terms_.scales() ? kLog2E : block.scale * kLog2E),
        rounds_(block.operands == AttentionOperands::kRounded) {}

  void Begin() {
    const int64_t queries = block_.queries.rows;
    PrefetchRows(block_.queries, 0, kPanel);
    std::fill_n(scratch_.maxima, RoundUpToPanel(queries), kMinusInfinity);
    std::fill_n(scratch_.sums, RoundUpToPanel(queries), 0.0f);
    if (!visible_.all() && block_.probabilities != nullptr) {
      std::fill_n(block_.probabilities, queries * block_.keys.rows, kMinusInfinity);
    }
  }

  // Packs the keys of the block that any query sees. There may be none.
  KeyBlock TakeKeys(KeyRange keys) const {
    const KeyRange visible = VisibleTo(0, block_.queries.rows, keys);
    if (visible.empty()) return {};
    return products_.TakeKeys(visible.begin, visible.end - visible.begin);
  }

  // Computes the attention of all queries to a block of keys that this run, or a run with the same
  // keys, has packed.
  void AttendKeys(const KeyBlock& block) {
    const int64_t queries = block_.queries.rows;
    const KeyRange visible = {block.first, block.first + block.count};
    if (terms_.any()) terms_.TakeKeys(block.first, block.count);
    for (int64_t q = 0; q < queries; q += kPanel) {
      const int64_t count = std::min(kPanel, queries - q);
      PrefetchRows(block_.queries, q + kPanel, kPanel);
      const KeyRange seen = VisibleTo(q, count, visible);
      if (seen.empty()) continue;
      KeyBlock part = block;
      part.first = seen.begin;
      part.count = seen.end - seen.begin;
      part.keys = block.keys.Rows(seen.begin - block.first, part.count);
      part.values += Elements<kOperands>(seen.begin - block.first) * block.value_stride;
      const QueryPanel panel = {q, count, VisibleTo(q, count, {0, block_.keys.rows})};
      count > static_cast<int64_t>(kLanes) ? Attend<2>(part, panel) : Attend<1>(part, panel);
    }
  }

  // Completes the results. Returns the number of fully masked queries.
  int64_t Finish() {
    int64_t fully_masked = 0;
    for (int64_t q = 0; q < block_.queries.rows; ++q) fully_masked += Finish(q);
    return fully_masked;
  }

 private:
  static constexpr AttentionOperands kOperands = Products::kOperands;

  // Returns the range of keys that any of the queries [first, first + count) sees. It begins at a
  // step of the products, so that keys that a query does not see do not change its bits.
  KeyRange VisibleTo(int64_t first, int64_t count, KeyRange within) const {
    KeyRange visible = visible_.Of(first, count, within);
    visible.begin = RoundDown(visible.begin, Products::kKeyStep);
    return visible;
  }

  template <int kVectors>
  void Attend(const KeyBlock& block, const QueryPanel& panel) {
    const float* rows[Width<kVectors>()];
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      rows[i] = block_.queries.row(panel.first + std::min(i, panel.count - 1));
    }
    if (block.first + block.count == panel.keys.end) PrefetchContext(panel);
    if (kOperands == AttentionOperands::kPairs && block_.are_pairs) {
      PackTransposed<AttentionOperands::kF32, kVectors>(rows, block_.queries.cols,
                                                        scratch_.queries);
    } else {
      PackTransposed<kOperands, kVectors>(rows, block_.queries.cols, scratch_.queries);
    }
    if (rounds_) RoundPacked(scratch_.queries, block_.queries.cols * Width<kVectors>());
    Floats maxima[kVectors];
    products_.template Score<kVectors>(block, maxima);
    if (terms_.any()) terms_.template Apply<kVectors>(block, panel, maxima);
    if (block_.probabilities != nullptr) StoreScores(block, panel, Width<kVectors>());
    TakeMaxima<kVectors>(block, panel, maxima);
    for (int64_t first = block.first, end; first < block.first + block.count; first = end) {
      end = std::min(block.first + block.count,
                     RoundDown(first, Products::kKeyChunk) + Products::kKeyChunk);
      const KeyChunk chunk{first - block.first, end - first, first == panel.keys.begin,
                           end == panel.keys.end};
      Exponentiate<kVectors>(chunk, panel, maxima);
      AddValues<kVectors>(block, chunk, panel);
    }
  }

  // Prefetches the cache lines of the results, which are far apart: waiting for them one by one
  // took a fifth of the time of a short sequence.
  void PrefetchContext(const QueryPanel& panel) const {
    for (int64_t q = 0; q < panel.count; ++q) {
      const float* row = block_.context.row(panel.first + q);
      for (int64_t col = 0; col < block_.context.cols; col += kFloatsPerCacheLine) {
        __builtin_prefetch(row + col, 1);
      }
    }
  }

  void StoreScores(const KeyBlock& block, const QueryPanel& panel, int64_t width) {
    for (int64_t q = 0; q < panel.count; ++q) {
      float* to = block_.probabilities + (panel.first + q) * block_.keys.rows + block.first;
      for (int64_t key = 0; key < block.count; ++key) to[key] = scratch_.scores[key * width + q];
    }
  }

  // Updates the run's maxima with the block's `maxima`, and rescales the sum and the context of
  // each query to the new maximum. Replaces `maxima` by the anchors of the exponents.
  template <int kVectors>
  void TakeMaxima(const KeyBlock& block, const QueryPanel& panel, Floats (&maxima)[kVectors]) {
    const FloatTag d;
    HWY_ALIGN float factors[Width<kVectors>()];
    for (int v = 0; v < kVectors; ++v) {
      float* held = scratch_.maxima + panel.first + v * kLanes;
      float* sums = scratch_.sums + panel.first + v * kLanes;
      const Floats before = hn::Load(d, held);
      const Floats after = hn::Max(before, hn::Mul(maxima[v], hn::Set(d, exponent_scale_)));
      maxima[v] = Anchor(after);
      const Floats factor = Exp2OfNonPositive(hn::Sub(before, maxima[v]));
      hn::Store(hn::Mul(hn::Load(d, sums), factor), d, sums);
      hn::Store(factor, d, factors + v * kLanes);
      hn::Store(after, d, held);
    }
    if (block.first == panel.keys.begin) return;
    products_.template Scale<kVectors>(panel, factors);
  }

  // Replaces the chunk's scores by e^(scores - maxima), in the number format of the products, and
  // adds them to the sums. Adds pairs of an even and an odd key first, whatever the width of the
  // panel, so that a query's bits do not depend on its panel.
  template <int kVectors>
  void Exponentiate(const KeyChunk& chunk, const QueryPanel& panel,
                    const Floats (&anchors)[kVectors]) {
    const FloatTag d;
    Floats sums[kVectors];
    for (Floats& sum : sums) sum = hn::Zero(d);
    float* scores = scratch_.scores + chunk.first * Width<kVectors>();
    float* to = scores;
    int64_t key = 0;
    for (; key + 2 <= chunk.count; key += 2, scores += 2 * Width<kVectors>()) {
      ExponentiateKeys<kVectors, 2>(scores, anchors, sums, to);
      to += 2 / kDepthOf<kOperands> * Width<kVectors>();
    }
    if (key < chunk.count) {
      ExponentiateKeys<kVectors, 1>(scores, anchors, sums, to);
      to += Width<kVectors>();
    }
    // The last tile must be padded with zeros.
    const int64_t end = (chunk.first + Elements<kOperands>(chunk.count)) * Width<kVectors>();
    std::fill(to, scratch_.scores + end, 0.0f);
    for (int v = 0; v < kVectors; ++v) {
      float* held = scratch_.sums + panel.first + v * kLanes;
      hn::Store(hn::Add(hn::Load(d, held), sums[v]), d, held);
    }
  }

  template <int kVectors, int kKeys>
  HWY_INLINE void ExponentiateKeys(const float* scores, const Floats (&anchors)[kVectors],
                                   Floats (&sums)[kVectors], float* to) {
    const FloatTag d;
    const Floats scale = hn::Set(d, exponent_scale_);
    Floats e[kKeys * kVectors];
    ForEach<kKeys * kVectors>([&](int i) HWY_ATTR {
      e[i] = hn::MulSub(hn::Load(d, scores + i * kLanes), scale, anchors[i % kVectors]);
    });
    Exp2OfNonPositive(e);
    constexpr bool kIsPair = kKeys == 2 && kDepthOf<kOperands> == 2;
    ForEach<kIsPair ? kVectors : kKeys * kVectors>([&](int i) HWY_ATTR {
      const Floats next = kIsPair ? e[kVectors + i] : hn::Zero(d);
      hn::Store(ToElements<kOperands>(e[i], next), d, to + i * kLanes);
    });
    ForEach<kVectors>([&](int v) HWY_ATTR {
      sums[v] = hn::Add(sums[v], kKeys == 1 ? e[v] : hn::Add(e[v], e[kVectors + v]));
    });
  }

  // Computes context += exponentials * values. After the last chunk, divides by the sums and writes
  // the result.
  template <int kVectors>
  void AddValues(const KeyBlock& block, const KeyChunk& chunk, const QueryPanel& panel) {
    const FloatTag d;
    HWY_ALIGN float factors[Width<kVectors>()];
    for (int v = 0; v < kVectors; ++v) {
      const Floats sum = hn::Load(d, scratch_.sums + panel.first + v * kLanes);
      const Floats one = hn::Set(d, 1.0f);
      hn::Store(chunk.is_last ? hn::Div(one, sum) : one, d, factors + v * kLanes);
    }
    if (rounds_) {
      RoundPacked(scratch_.scores + chunk.first * Width<kVectors>(),
                  chunk.count * Width<kVectors>());
    }
    products_.template AddValues<kVectors>(block, chunk, panel, factors);
  }

  // Completes the result of query q that the products could not write in place. Returns whether the
  // query was fully masked.
  bool Finish(int64_t q) {
    const float sum = scratch_.sums[q];
    float* probabilities =
        block_.probabilities == nullptr ? nullptr : block_.probabilities + q * block_.keys.rows;
    float* context = block_.context.row(q);
    if (sum == 0.0f) {
      std::fill_n(context, block_.context.cols, 0.0f);
      if (probabilities != nullptr) std::fill_n(probabilities, block_.keys.rows, 0.0f);
      return true;
    }
    products_.Finish(q);
    if (probabilities != nullptr) {
      const FloatTag d;
      const Floats anchor = Anchor(hn::Set(d, scratch_.maxima[q]));
      const Floats scale = hn::Set(d, exponent_scale_), inverse = hn::Set(d, 1.0f / sum);
      TransformRow(probabilities, static_cast<size_t>(block_.keys.rows), probabilities,
                   [=](Floats score) HWY_ATTR {
                     return hn::Mul(Exp2OfNonPositive(hn::MulSub(score, scale, anchor)), inverse);
                   });
    }
    return false;
  }

  const AttentionBlock& block_;
  const AttentionScratch& scratch_;
  const Products products_;
  const VisibleKeys visible_;
  ScoreTerms terms_;
  const float exponent_scale_;
  const bool rounds_;  // whether packed elements are rounded to bfloat16
};

// Returns the scratch memory with the arrays of one of several heads.
AttentionScratch OfHead(const AttentionScratch& scratch, size_t head, const AttentionBlock& block) {
  const int64_t first = static_cast<int64_t>(head) * RoundUpToPanel(block.queries.rows);
  AttentionScratch own = scratch;
  own.context += first * RoundUpToPanel(block.context.cols);
  own.maxima += first;
  own.sums += first;
  return own;
}

template <class Products>
int64_t AttendAll(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch) {
  AttentionScratch scratches[kMostSharing];
  std::optional<Run<Products>> runs[kMostSharing];
  for (size_t h = 0; h < heads.size(); ++h) {
    scratches[h] = OfHead(scratch, h, heads[h]);
    runs[h].emplace(heads[h], scratches[h]).Begin();
  }
  const int64_t keys = heads.front().keys.rows;
  for (int64_t key = 0; key < keys; key += kKeyBlock) {
    const KeyBlock block = runs[0]->TakeKeys({key, std::min(keys, key + kKeyBlock)});
    for (size_t h = 0; block.count > 0 && h < heads.size(); ++h) runs[h]->AttendKeys(block);
  }
  int64_t fully_masked = 0;
  for (size_t h = 0; h < heads.size(); ++h) fully_masked += runs[h]->Finish();
  return fully_masked;
}

int64_t AttendRows(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch) {
  if (heads.front().score_weights != nullptr) return AttendAll<AdditiveProducts>(heads, scratch);
  return AttendAll<VectorProducts<AttentionOperands::kF32>>(heads, scratch);
}

#if HWY_TARGET <= ATTENDANT_BF16_TARGET
int64_t AttendPairs(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch) {
  return AttendAll<VectorProducts<AttentionOperands::kPairs>>(heads, scratch);
}
#endif

#if HWY_TARGET <= HWY_AVX3
int64_t AttendTiles(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch) {
  return AttendAll<AmxProducts>(heads, scratch);
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(AttendRows);

int64_t AttendHeads(absl::Span<const AttentionBlock> heads, const AttentionScratch& scratch) {
  const bool pairs = heads.front().operands == AttentionOperands::kPairs;
  const bool tiles = heads.front().operands == AttentionOperands::kTiles;
  if (pairs) RequireBf16Units();
  if (tiles) RequireAmxUnits();
#if (HWY_TARGETS & ATTENDANT_BF16_TARGET) != 0
  if (pairs) return ATTENDANT_BF16_NAMESPACE::AttendPairs(heads, scratch);
#endif
#if (HWY_TARGETS & HWY_AVX3) != 0
  if (tiles) return N_AVX3::AttendTiles(heads, scratch);
#endif
  return HWY_DYNAMIC_DISPATCH(AttendRows)(heads, scratch);
}

}  // namespace attendant
#endif  // HWY_ONCE
