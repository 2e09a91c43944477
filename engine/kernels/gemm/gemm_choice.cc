#include "engine/kernels/gemm/gemm_choice.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/isa.h"

namespace attendant {
namespace {

// The implementation on each CPU, by EffectiveIsa. Measured with oneDNN 2.6.3. Its kernels for AVX2
// copy the weight in each call, and its int8 sums saturate without VNNI: on a Zen 5 CPU capped to
// AVX2, the vector GEMM is 1.6 times as fast for 16 rows, 1.07 times for 64, and equally fast for
// 256. oneDNN has fast kernels for AVX-512 and later, but those for float32 do not prefetch
// weights: on a Zen 5 CPU, models with the vector GEMM are 1.3 times as fast for 16 tokens,
// and 1.03 times for 1,024. In Debian's oneDNN for arm64, products are reference code, and there
// are none of bfloat16.
struct ProductsOfCpu {
  const char* isa;
  Gemm float32;  // and emulated types
  Gemm int8;
  Gemm bf16;  // if the CPU has the units
};
constexpr ProductsOfCpu kProducts[] = {
    {"avx2", Gemm::kVector, Gemm::kVector, Gemm::kOneDnn},
    {"avx2_vnni", Gemm::kVector, Gemm::kVector, Gemm::kOneDnn},
    {"avx512", Gemm::kOneDnn, Gemm::kVector, Gemm::kOneDnn},
    {"avx512_vnni", Gemm::kOneDnn, Gemm::kOneDnn, Gemm::kOneDnn},
    {"avx512_bf16", Gemm::kVector, Gemm::kOneDnn, Gemm::kOneDnn},
    {"amx", Gemm::kOneDnn, Gemm::kOneDnn, Gemm::kOneDnn},
    {"neon", Gemm::kVector, Gemm::kVector, Gemm::kVector},
    {"neon_dotprod", Gemm::kVector, Gemm::kVector, Gemm::kVector},
    {"neon_i8mm", Gemm::kVector, Gemm::kVector, Gemm::kVector},
    {"neon_bf16", Gemm::kVector, Gemm::kVector, Gemm::kVector},
};

const ProductsOfCpu& ProductsOfThisCpu() {
  static const ProductsOfCpu& products = [isa = EffectiveIsa()]() -> const ProductsOfCpu& {
    const auto* const found =
        std::find_if(std::begin(kProducts), std::end(kProducts),
                     [&](const ProductsOfCpu& one) { return one.isa == isa; });
    return found == std::end(kProducts) ? kProducts[0] : *found;
  }();
  return products;
}

constexpr int64_t kMostTrialOutputs = 768;  // a few panels
// More than the private caches of a core: in production a layer's weights are evicted from them
// before it runs again.
constexpr int64_t kBytesBetween = int64_t{4} << 20;
constexpr int64_t kTrialRows[] = {256, 16};
constexpr int kTrialRounds = 4;

std::vector<float> RandomValues(int64_t count, uint32_t seed) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

// A layer with random weights that runs on one thread.
class Candidate {
 public:
  Candidate(PackedLinear linear, const ThreadTeam& team)
      : linear_(std::move(linear)),
        workspace_(team),
        y_(*std::max_element(std::begin(kTrialRows), std::end(kTrialRows)) *
           linear_.out_features()) {
    workspace_.Reserve(linear_, static_cast<int64_t>(y_.size()) / linear_.out_features());
  }

  // Packs x. Not part of the measured time.
  void Prepare(MatrixView<const float> x) {
    packed_ = workspace_.Prepare(linear_.in_features(), x.rows);
    packed_.WriteRows(0, 0, x);
  }

  // Computes y from the packed x.
  void Run(MatrixView<const float> x) {
    const int64_t out = linear_.out_features();
    const MatrixView<float> y = {y_.data(), x.rows, out, out};
    workspace_.Apply(linear_, {x, packed_}, y);
  }

  const std::vector<float>& y() const { return y_; }

 private:
  PackedLinear linear_;
  GemmWorkspace workspace_;
  PackedInput packed_;
  std::vector<float> y_;
};

// Returns 0 if any bit differs.
double TrialSpeedup(Candidate& tiles, Candidate& onednn, MatrixView<const float> x) {
  for (Candidate* candidate : {&tiles, &onednn}) {
    candidate->Prepare(x);
    candidate->Run(x);
  }
  if (std::memcmp(tiles.y().data(), onednn.y().data(), tiles.y().size() * sizeof(float)) != 0) {
    return 0;
  }
  std::vector<char> between(kBytesBetween);
  const auto touch_others = [&] {
    std::for_each(between.begin(), between.end(), [](char& byte) { ++byte; });
  };
  return SpeedupOf({.tiles = [&] { tiles.Run(x); },
                    .onednn = [&] { onednn.Run(x); },
                    .before_each = touch_others},
                   absl::Now);
}

// Returns the smaller speedup of both numbers of rows.
absl::StatusOr<double> TrialSpeedup(ComputeMode mode, const ProductPlan& plan) {
  const int64_t in = plan.in, out = std::min(plan.out, kMostTrialOutputs);
  const std::vector<float> weight = RandomValues(out * in, 1), bias = RandomValues(out, 2);
  const MatrixView<const float> rows_of_weight{weight.data(), out, in, in};
  mode.gemm = Gemm::kTiles;
  ASSIGN_OR_RETURN(PackedLinear of_tiles, PackedLinear::Pack(rows_of_weight, bias, mode));
  mode.gemm = Gemm::kOneDnn;
  ASSIGN_OR_RETURN(PackedLinear of_onednn, PackedLinear::Pack(rows_of_weight, bias, mode));
  const ThreadTeam team(1);
  Candidate tiles(std::move(of_tiles), team), onednn(std::move(of_onednn), team);
  std::optional<double> least;
  for (const int64_t rows : kTrialRows) {
    const std::vector<float> x = RandomValues(rows * in, 3);
    const double speedup = TrialSpeedup(tiles, onednn, {x.data(), rows, in, in});
    least = std::min(least.value_or(speedup), speedup);
    if (speedup == 0) break;
  }
  return *least;
}

// Never shrinks: a process loads models with only a few distinct layers.
class Trials {
 public:
  absl::StatusOr<double> Find(const ComputeMode& mode, const ProductPlan& plan) {
    const absl::MutexLock lock(&mutex_);
    const Key key = {mode.type, plan.in, plan.out, plan.k_block};
    if (const auto found = speedups_.find(key); found != speedups_.end()) return found->second;
    ASSIGN_OR_RETURN(const double speedup, TrialSpeedup(mode, plan));
    return speedups_[key] = speedup;
  }

 private:
  struct Key {
    ComputeType type;
    int64_t in;
    int64_t out;
    int64_t k_block;
    auto operator<=>(const Key&) const = default;
  };

  absl::Mutex mutex_;
  std::map<Key, double> speedups_ ABSL_GUARDED_BY(mutex_);
};

bool HasAmxGemm(const ComputeMode& mode, int64_t k_block) {
  if (mode.type == ComputeType::kF32 || mode.emulate || !HasAmxUnits()) return false;
  return FillsAmxTiles(
      mode.type == ComputeType::kInt8 ? GemmElement::kInt8 : GemmElement::kBFloat16Both, k_block);
}

}  // namespace

double SpeedupOf(const SpeedTest& speed_test, absl::FunctionRef<absl::Time()> now) {
  const auto time = [&](absl::FunctionRef<void()> run) {
    speed_test.before_each();
    const absl::Time begin = now();
    run();
    return now() - begin;
  };
  absl::Duration tiles = absl::InfiniteDuration(), onednn = tiles;
  for (int round = 0; round < kTrialRounds; ++round) {
    tiles = std::min(tiles, time(speed_test.tiles));
    onednn = std::min(onednn, time(speed_test.onednn));
  }
  return absl::FDivDuration(onednn, tiles);
}

bool IsForVectorGemm(const ComputeMode& mode) {
  const ProductsOfCpu& products = ProductsOfThisCpu();
  if (mode.emulate || mode.type == ComputeType::kF32) return products.float32 == Gemm::kVector;
  if (mode.type == ComputeType::kInt8) return products.int8 == Gemm::kVector;
  return mode.type == ComputeType::kBf16 && products.bf16 == Gemm::kVector;
}

bool UsesVectorGemm(const ComputeMode& mode) {
  return mode.gemm == Gemm::kAuto ? IsForVectorGemm(mode) : mode.gemm == Gemm::kVector;
}

absl::Status ChooseGemm(const ComputeMode& mode, ProductPlan& plan) {
  static Trials* const trials = new Trials;
  const bool vector = UsesVectorGemm(mode);
  const bool tiles = !vector && mode.gemm != Gemm::kOneDnn && HasAmxGemm(mode, plan.k_block);
  plan.gemm = vector ? Gemm::kVector : tiles ? Gemm::kTiles : Gemm::kOneDnn;
  if (!tiles || mode.gemm == Gemm::kTiles) return absl::OkStatus();
  ASSIGN_OR_RETURN(plan.tiles_speedup, trials->Find(mode, plan));
  if (plan.tiles_speedup < kWorthwhileSpeedup) plan.gemm = Gemm::kOneDnn;
  return absl::OkStatus();
}

}  // namespace attendant
