// Contender that computes only the matrix products of the batches; see worker.h.
//   bound_worker --model SOURCE [--dtype f32|bf16x3|bf16|int8] [--threads N] [--split team|rows]
//                [--row-multiple 64|16] [--products plain|engine]
// plain: the GEMM bound, see gemm_bound.h; engine: see engine_products.h, whose rows are rounded up
// to 16.

#include <algorithm>
#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/bench/engine_products.h"
#include "tests/bench/gemm_bound.h"
#include "tests/bench/worker.h"

namespace attendant::bench {
namespace {

using Tokens = std::vector<int64_t>;  // the tokens of each batch
using Products = std::function<void(int64_t tokens)>;
using Maker = std::function<absl::StatusOr<Products>(const Tokens& batch_tokens)>;

class ProductsContender : public Contender {
 public:
  ProductsContender(Maker make, const ModelDescription& model)
      : make_(std::move(make)), layers_(model.layers), widths_(ProductWidths(model.layer)) {}

  absl::Status Prepare(std::vector<Batch> batches) override {
    tokens_.clear();
    for (const Batch& batch : batches) tokens_.push_back(batch.tokens());
    run_ = nullptr;
    absl::StatusOr<Products> made = make_(tokens_);
    if (made.ok()) run_ = std::move(*made);
    return made.status();
  }

  absl::StatusOr<double> Run() override {
    const double begin = SecondsNow();
    for (const int64_t tokens : tokens_) run_(tokens);
    return SecondsNow() - begin;
  }

  nlohmann::json Facts() const override {
    auto products = nlohmann::json::array();
    for (const Width& width : widths_) products.push_back({width.in, width.out});
    return {{"layers", layers_}, {"products", products}};
  }

 private:
  Maker make_;
  int64_t layers_;
  std::vector<Width> widths_;
  Tokens tokens_;
  Products run_;
};

Maker PlainMaker(const WorkerOptions& options, ComputeType type, const ModelDescription& model) {
  const GemmBound::Plan plan{
      .layers = model.layers,
      .widths = ProductWidths(model.layer),
      .type = type,
      .threads = options.threads,
      .split = options.split == "rows" ? GemmBound::Split::kRows : GemmBound::Split::kTeam,
      .row_multiple = options.row_multiple};
  return [plan](const Tokens& batch_tokens) -> absl::StatusOr<Products> {
    try {
      auto bound = std::make_shared<GemmBound>(plan, batch_tokens);
      return [bound](int64_t tokens) { bound->Run(tokens); };
    } catch (const dnnl::error& error) {
      return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
    }
  };
}

Maker EngineMaker(const WorkerOptions& options, ComputeType type, const ModelDescription& model) {
  const EngineProducts::Plan plan{.model = model,
                                  .type = type,
                                  .threads = options.threads,
                                  .share_rows = options.split == "rows"};
  return [plan](const Tokens& batch_tokens) -> absl::StatusOr<Products> {
    auto made =
        EngineProducts::Make(plan, *std::max_element(batch_tokens.begin(), batch_tokens.end()));
    if (!made.ok()) return made.status();
    const std::shared_ptr<EngineProducts> products = *std::move(made);
    return [products](int64_t tokens) { products->Run(tokens); };
  };
}

absl::StatusOr<std::unique_ptr<Contender>> Make(const WorkerOptions& options) {
  const absl::StatusOr<ComputeType> type = TypeNamed(options.dtype);
  if (!type.ok()) return type.status();
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(options.model, {});
  if (!checkpoint.ok()) return checkpoint.status();
  const auto make = options.products == "engine" ? EngineMaker : PlainMaker;
  const ModelDescription& model = checkpoint->description;
  return std::make_unique<ProductsContender>(make(options, *type, model), model);
}

}  // namespace
}  // namespace attendant::bench

int main(int argc, char** argv) {
  return attendant::bench::ServeContender(argc, argv, attendant::bench::Make);
}
