// Linear layers, y = activation(x W^T + b), with weights that are packed once.
//
// For a given instruction set and oneDNN version, a row of the result has the same bits whatever
// other rows are computed with it and whatever the number of threads. To ensure this, every product
// runs on one thread and on row tiles of a few fixed sizes. When a shape is first packed, a
// self-test of oneDNN's products keeps only the tile sizes for which a row's bits depend neither on
// the size nor on the row's position in the tile. If bfloat16 products on AMX fail the test, it
// finds a K block for which they pass, and the products of the blocks are added in float32.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/page_arena.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/linear_rows.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {

class PackedWeight;
struct PanelKernels;

// A linear layer, y = x W^T + b, packed for the CPU. Immutable and thread-safe. Copies share the
// packed weight.
class PackedLinear {
 public:
  // Copies and packs `weight`, [out, in] in row-major order (torch's layout), and `bias`, [out] or
  // empty. The threads of `team` share the work. The packed weight lies in `arena`. `mode` must
  // pass CheckComputeMode (compute_support.h). Returns INTERNAL if oneDNN fails.
  static absl::StatusOr<PackedLinear> Pack(MatrixView<const float> weight,
                                           absl::Span<const float> bias,
                                           const ComputeMode& mode = {},
                                           const ThreadTeam& team = ThreadTeam(1),
                                           PageArena arena = {});

  // Creates an empty layer. Only operator bool may be called.
  PackedLinear() = default;
  explicit operator bool() const { return weight_ != nullptr; }

  int64_t in_features() const;
  int64_t out_features() const;
  // The bytes of the packed weight, its scales and the bias.
  int64_t bytes() const;
  const ProductPlan& plan() const;

  // For use in this directory only.
  const PackedWeight& weight() const { return *weight_; }

 private:
  explicit PackedLinear(std::shared_ptr<const PackedWeight> weight) : weight_(std::move(weight)) {}
  std::shared_ptr<const PackedWeight> weight_;
};

// The input layout and the kernels of a linear layer, for which GemmWorkspace reserves memory. Does
// not keep the weight alive; the kernels live as long as the process.
struct ProductNeeds {
  ProductNeeds(const PackedLinear& linear);  // NOLINT(google-explicit-constructor)

  PackedInputLayout input;
  std::array<const PanelKernels*, 2> kernels;  // of the first and the last panel
};

// A linear layer, or some of its outputs: the columns [begin, end) of y, where end > begin.
// `linear` must outlive it.
struct LinearColumns {
  LinearColumns(const PackedLinear& all)  // NOLINT(google-explicit-constructor)
      : LinearColumns(all, 0, all.out_features()) {}
  LinearColumns(const PackedLinear& some, int64_t first, int64_t last)
      : linear(some), begin(first), end(last) {}

  const PackedLinear& linear;
  int64_t begin;
  int64_t end;
};

// The products of linear layers on one team, and their memory: packed GEMM inputs in the number
// format of the compute type, and scratch memory for each worker. One per instance. Not
// thread-safe, except that several workers may write one PackedInput.
class GemmWorkspace {
 public:
  // `team` must outlive the workspace.
  explicit GemmWorkspace(const ThreadTeam& team);
  GemmWorkspace(GemmWorkspace&&) noexcept;
  ~GemmWorkspace();

  // Reserves memory for a linear layer and batches of up to `rows` rows. Products within the
  // reservation do not allocate. All reserved layers that are not kF32 have the same mode.
  void Reserve(const ProductNeeds& needs, int64_t rows);
  // Likewise for a layer whose packed input PrepareInner returns.
  void ReserveInner(const ProductNeeds& needs, int64_t rows);

  // Returns a buffer for x [rows, in] in the format that all reserved layers with `in` inputs read.
  // The rows from `rows` to PaddedRows(rows) are zero. The code that computes x writes it row by
  // row. The buffer is valid until the next Prepare, or until Apply is called without a valid one.
  // It is empty for kF32, which reads x itself, and if no such layer has reserved memory for so
  // many rows, because then no product reads it.
  PackedInput Prepare(int64_t in, int64_t rows);
  // Returns a second buffer, for the rows between two layers. It is valid until the next
  // PrepareInner.
  PackedInput PrepareInner(int64_t in, int64_t rows);

  // From now on, splits products of at least `rows` rows by rows: each worker computes all columns
  // of its share of the rows. Smaller products, and all products if `rows` is 0, as by default, are
  // split by panel. The bits of results do not depend on this.
  void ShareRowsFrom(int64_t rows);

  // Computes y = activation(x W^T + b). x is [T, in], and memory for PaddedRows(T) rows, all of
  // which may be read. y is [T, out] and must not overlap x. If y has a packed input, that of the
  // next layer, writes it: directly, while a block of y is in cache, if it TakesColumns; otherwise
  // from y.rows, which are written first. It must not be in the same memory as the packed input of
  // x (Prepare and PrepareInner). Unless x has a valid packed input of this workspace, its rows are
  // first rounded or quantised to the number format of the compute type. In int8, rows that are not
  // finite become NaN. The activation is applied to each block while it is in cache. If `columns`
  // are only some outputs, y must still have all columns, and up to kPanelWidth - 1 columns on
  // either side may be computed too. The layer must be reserved for this number of rows.
  void Apply(const LinearColumns& columns, const LinearInput& x, const PreparedRows& y,
             Activation activation = Activation::kIdentity);

  // The bytes of the packed inputs. Excludes the workers' scratch memory, which does not grow with
  // the rows.
  int64_t packed_input_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
