#include "tests/bench/engine_products.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/gemm.h"
#include "tests/bench/kernel_operands.h"
#include "tests/bench/product_widths.h"

namespace attendant::bench {
namespace {

// The rows of all layers of one width: x with its packed form, and y.
struct Rows {
  Rows(const Width& width, int64_t rows, const ThreadTeam& team)
      : x(rows, width.in), y(rows, width.out), workspace(team) {}

  void Prepare(const ThreadTeam& team, int64_t rows) {
    const int64_t in = x.view().cols;
    packed = workspace.Prepare(in, rows);
    team.ParallelFor(rows, [&](int worker, int64_t r) {
      packed.WriteRows(worker, r, {x.view().row(r), 1, in, in});
    });
  }

  Matrix x;
  Matrix y;
  GemmWorkspace workspace;
  PackedInput packed;
};

}  // namespace

class EngineProducts::Impl {
 public:
  explicit Impl(const Plan& plan)
      : plan_(plan), mode_{.type = plan.type, .gemm = Gemm::kOneDnn}, team_(plan.threads) {}

  absl::Status Pack(int64_t most_tokens) {
    const std::vector<Width> widths = ProductWidths(plan_.model.layer);
    const int64_t rows = PaddedRows(most_tokens);
    for (const Width& width : widths) rows_.emplace_back(width, rows, team_);
    for (int64_t layer = 0; layer < plan_.model.layers; ++layer) {
      for (size_t i = 0; i < widths.size(); ++i) {
        Matrix weight(widths[i].out, widths[i].in);
        const std::vector<float> bias(static_cast<size_t>(widths[i].out), 0.1f);
        absl::StatusOr<PackedLinear> packed = PackedLinear::Pack(weight.view(), bias, mode_);
        if (!packed.ok()) return packed.status();
        linears_.push_back(*std::move(packed));
      }
    }
    for (size_t i = 0; i < widths.size(); ++i) {
      rows_[i].workspace.Reserve(linears_[i], rows);
      rows_[i].workspace.ShareRowsFrom(plan_.share_rows ? 1 : 0);
    }
    return absl::OkStatus();
  }

  void Run(int64_t tokens) {
    const int64_t rows = PaddedRows(tokens);
    for (size_t i = 0; i < rows_.size() && rows != prepared_rows_; ++i) {
      rows_[i].Prepare(team_, rows);
    }
    prepared_rows_ = rows;
    for (size_t i = 0; i < linears_.size(); ++i) {
      Rows& of_width = rows_[i % rows_.size()];
      of_width.workspace.Apply(linears_[i], {of_width.x.view().Rows(0, rows), of_width.packed},
                               of_width.y.view().Rows(0, rows));
    }
  }

 private:
  const Plan plan_;
  const ComputeMode mode_;
  const ThreadTeam team_;
  std::vector<PackedLinear> linears_;  // [layers, products]
  std::vector<Rows> rows_;             // [products]
  int64_t prepared_rows_ = 0;
};

EngineProducts::EngineProducts(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EngineProducts::~EngineProducts() = default;

absl::StatusOr<std::unique_ptr<EngineProducts>> EngineProducts::Make(const Plan& plan,
                                                                     int64_t most_tokens) {
  auto impl = std::make_unique<Impl>(plan);
  if (absl::Status status = impl->Pack(most_tokens); !status.ok()) return status;
  return std::unique_ptr<EngineProducts>(new EngineProducts(std::move(impl)));
}

void EngineProducts::Run(int64_t tokens) { impl_->Run(tokens); }

}  // namespace attendant::bench
