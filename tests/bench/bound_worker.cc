// The GEMM bound as a contender: the matrix products of the same batches alone; see worker.h.
//   bound_worker --model SOURCE [--dtype f32|bf16x3|bf16|int8] [--threads N] [--split team|rows]
//                [--row-multiple 64|16]

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/bench/gemm_bound.h"
#include "tests/bench/worker.h"

namespace attendant::bench {
namespace {

class BoundContender : public Contender {
 public:
  explicit BoundContender(GemmBound::Plan plan) : plan_(std::move(plan)) {}

  absl::Status Prepare(std::vector<Batch> batches) override {
    tokens_.clear();
    for (const Batch& batch : batches) tokens_.push_back(batch.tokens());
    bound_ = nullptr;
    try {
      bound_ = std::make_unique<GemmBound>(plan_, tokens_);
    } catch (const dnnl::error& error) {
      return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Run() override {
    const double begin = SecondsNow();
    for (const int64_t tokens : tokens_) bound_->Run(tokens);
    return SecondsNow() - begin;
  }

 private:
  GemmBound::Plan plan_;
  std::vector<int64_t> tokens_;  // of each batch
  std::unique_ptr<GemmBound> bound_;
};

absl::StatusOr<std::unique_ptr<Contender>> Make(const WorkerOptions& options) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(options.model, {});
  if (!checkpoint.ok()) return checkpoint.status();
  GemmBound::Plan plan{.model = checkpoint->description,
                       .type = GemmBound::Type::kFloat32,
                       .threads = options.threads,
                       .split = GemmBound::Split::kTeam,
                       .row_multiple = options.row_multiple};
  if (options.dtype == "bf16x3") plan.type = GemmBound::Type::kBFloat16x3;
  if (options.dtype == "bf16") plan.type = GemmBound::Type::kBFloat16;
  if (options.dtype == "int8") plan.type = GemmBound::Type::kInt8;
  if (options.split == "rows") plan.split = GemmBound::Split::kRows;
  return std::make_unique<BoundContender>(std::move(plan));
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  return attendant::bench::ServeContender(argc, argv, attendant::bench::Make);
}
