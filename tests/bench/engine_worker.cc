// Contender that is the engine: it computes packed batches by engine/layers; see worker.h.
//   engine_worker --model SOURCE [--dtype f32] [--weights auto] [--threads N] [--gemm auto] [--isa
//   best]
// ATTENDANT_ROW_PLAN, auto (the default), team or rows: as the server's --row-plan.
// ATTENDANT_PART, encode (the default) or attend: all layers, or the context of layer 0 alone.

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/cpu_budget.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/kernels/isa.h"
#include "engine/layers/encoder.h"
#include "tests/bench/worker.h"

namespace attendant::bench {
namespace {

class EngineContender : public Contender {
 public:
  EngineContender(std::shared_ptr<const Encoder> encoder, int threads, RowPolicy row_policy,
                  bool attention_alone)
      : encoder_(std::move(encoder)),
        threads_(threads),
        row_policy_(row_policy),
        attention_alone_(attention_alone) {}

  absl::Status Prepare(std::vector<Batch> batches) override {
    batches_ = std::move(batches);
    int64_t most_tokens = 1, longest = 0;
    for (const Batch& batch : batches_) {
      most_tokens = std::max(most_tokens, batch.tokens());
      for (size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
        longest = std::max<int64_t>(longest, batch.cu_seqlens[i] - batch.cu_seqlens[i - 1]);
      }
    }
    const auto& embeddings = encoder_->description().embeddings;
    const int64_t limit = embeddings ? embeddings->longest_sequence() : 0;  // 0: none
    if (limit > 0 && longest > limit) {
      return absl::InvalidArgumentError(absl::StrCat("a sequence of ", longest, " tokens"));
    }
    run_ = nullptr;
    run_ = std::make_unique<EncoderRun>(encoder_, most_tokens, threads_);
    row_plan_ = run_->ChooseRowPlan(row_policy_, absl::Now);
    run_->SetRowPlan(row_plan_);
    return absl::OkStatus();
  }

  absl::StatusOr<double> Run() override {
    double seconds = 0;
    for (const Batch& batch : batches_) {
      const absl::StatusOr<MatrixView<const float>> result = Compute(batch, seconds);
      if (!result.ok()) return result.status();
    }
    return seconds;
  }

  absl::Status Save(const std::string& file) override {
    std::ofstream stream(file, std::ios::binary);
    for (const Batch& batch : batches_) {
      double seconds = 0;
      const absl::StatusOr<MatrixView<const float>> result = Compute(batch, seconds);
      if (!result.ok()) return result.status();
      for (int64_t row = 0; row < result->rows; ++row) {
        stream.write(reinterpret_cast<const char*>(result->row(row)),
                     static_cast<std::streamsize>(result->cols * sizeof(float)));
      }
    }
    return stream.flush() ? absl::OkStatus() : absl::UnavailableError("cannot write " + file);
  }

  nlohmann::json Facts() const override {
    const CpuBudget budget = MeasureCpuBudget();
    return {{"isa", EffectiveIsa()},
            {"onednn", OneDnnVersion()},
            {"threads", threads_},
            {"threads_reason", budget.reason},
            {"rows_per_thread_from", row_plan_.rows_from},
            {"row_trials", RowTrials()},
            {"product_plans", ProductPlans()},
            {"weight_bytes", encoder_->weight_bytes()},
            {"run_bytes", run_ == nullptr ? 0 : run_->bytes()}};
  }

 private:
  nlohmann::json ProductPlans() const {
    auto plans = nlohmann::json::array();
    for (const ProductPlan& plan : encoder_->product_plans()) {
      plans.push_back({{"in", plan.in},
                       {"out", plan.out},
                       {"k_block", plan.k_block},
                       {"tile_rows", plan.tile_rows},
                       {"implementations", plan.implementations},
                       {"gemm", Name(plan.gemm)},
                       {"tiles_speedup", plan.tiles_speedup}});
    }
    return plans;
  }

  // The facts of the last case.
  nlohmann::json RowTrials() const {
    auto trials = nlohmann::json::array();
    for (const RowTrial& trial : row_plan_.trials) {
      trials.push_back({{"tokens", trial.tokens},
                        {"team_s", absl::ToDoubleSeconds(trial.team)},
                        {"rows_s", absl::ToDoubleSeconds(trial.rows)}});
    }
    return trials;
  }

  // Adds the time from token ids to the last hidden state, or from hidden states for a model
  // without embeddings and for attention alone.
  absl::StatusOr<MatrixView<const float>> Compute(const Batch& batch, double& seconds) {
    const ModelDescription& model = encoder_->description();
    const bool embeds = model.embeddings && !attention_alone_;
    if (!embeds) FillInput(batch.tokens());
    RunObserver nobody;
    const double begin = SecondsNow();
    if (embeds) run_->Embed(EmbeddingIds(batch), 0);
    const PackedBatch packed = {.cu_seqlens = batch.cu_seqlens, .bias = {}};
    auto result = attention_alone_ ? run_->Attend(0, AttendStage::kContext, packed, nobody)
                                   : run_->Encode(0, model.layers, packed, nobody);
    seconds += SecondsNow() - begin;
    return result;
  }

  TokenIds EmbeddingIds(const Batch& batch) {
    const int64_t first = encoder_->description().embeddings->first_position;
    positions_.clear();
    for (size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
      const int32_t length = batch.cu_seqlens[i] - batch.cu_seqlens[i - 1];
      for (int32_t at = 0; at < length; ++at)
        positions_.push_back(static_cast<int32_t>(first) + at);
    }
    return {.words = batch.token_ids, .positions = positions_, .token_types = {}};
  }

  void FillInput(int64_t rows) {
    const MatrixView<float> input = run_->input();
    for (int64_t i = 0; i < rows * input.cols; ++i) {
      input.data[i] = static_cast<float>(i * 101 % 257 - 128) / 128.0f;
    }
  }

  std::shared_ptr<const Encoder> encoder_;
  int threads_;
  RowPolicy row_policy_;
  bool attention_alone_;
  RowPlan row_plan_;
  std::vector<Batch> batches_;
  std::vector<int32_t> positions_;
  std::unique_ptr<EncoderRun> run_;
};

absl::StatusOr<WeightType> WeightTypeNamed(const std::string& name) {
  if (const std::optional<WeightType> type = ValueIn(kWeightTypeNames, name)) return *type;
  return absl::InvalidArgumentError(absl::StrCat("--weights: no such type: ", name));
}

absl::StatusOr<Gemm> GemmNamed(const std::string& name) {
  if (const std::optional<Gemm> gemm = ValueIn(kGemmNames, name)) return *gemm;
  return absl::InvalidArgumentError(absl::StrCat("--gemm: no such products: ", name));
}

absl::StatusOr<RowPolicy> RowPolicyOf(const char* variable) {
  const std::string name = variable == nullptr ? "auto" : variable;
  if (name == "auto") return RowPolicy::kTimed;
  if (name == "team") return RowPolicy::kTeam;
  if (name == "rows") return RowPolicy::kRows;
  return absl::InvalidArgumentError(absl::StrCat("ATTENDANT_ROW_PLAN: no such plan: ", name));
}

absl::StatusOr<bool> IsAttentionAlone(const char* variable) {
  const std::string part = variable == nullptr ? "encode" : variable;
  if (part == "encode" || part == "attend") return part == "attend";
  return absl::InvalidArgumentError(absl::StrCat("ATTENDANT_PART: no such part: ", part));
}

absl::StatusOr<std::unique_ptr<Contender>> Make(const WorkerOptions& options) {
  absl::StatusOr<ComputeType> type = TypeNamed(options.dtype);
  if (!type.ok()) return type.status();
  absl::StatusOr<Gemm> gemm = GemmNamed(options.gemm);
  if (!gemm.ok()) return gemm.status();
  absl::StatusOr<WeightType> weights = WeightTypeNamed(options.weights);
  if (!weights.ok()) return weights.status();
  absl::StatusOr<RowPolicy> row_policy = RowPolicyOf(std::getenv("ATTENDANT_ROW_PLAN"));
  if (!row_policy.ok()) return row_policy.status();
  const absl::StatusOr<bool> attention_alone = IsAttentionAlone(std::getenv("ATTENDANT_PART"));
  if (!attention_alone.ok()) return attention_alone.status();
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(options.model, {});
  if (!checkpoint.ok()) return checkpoint.status();
  auto encoder = Encoder::Load(
      checkpoint->description, *checkpoint->weights, [](int64_t, int64_t) {},
      {.type = *type, .gemm = *gemm, .weights = *weights}, options.threads);
  if (!encoder.ok()) return encoder.status();
  malloc_trim(0);  // as the server does after loading a model
  return std::make_unique<EngineContender>(*std::move(encoder), options.threads, *row_policy,
                                           *attention_alone);
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  return attendant::bench::ServeContender(argc, argv, attendant::bench::Make);
}
