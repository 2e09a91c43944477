// Linear layers: oneDNN matrix products over weights that were packed once.
//
// Invariance. Every product runs on row tiles of a few fixed sizes with one thread, and a check
// when the shape is first packed keeps only those sizes for which a row's bits do not depend on the
// size or on its place in the tile. So a row of the result is the same bits whatever other rows are
// computed with it and on however many threads (for one ISA and oneDNN version). Measured: AVX2
// oneDNN 2.6.3 breaks this at 8, 20 or 32 rows, not at 16, 64 or 256. Where AMX breaks it for
// bfloat16, the check finds a K block that does not, and the blocks' sums are added in float32.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/gemm/linear_input.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {

// For GemmWorkspace::ShareRowsFrom.
inline constexpr int64_t kNeverShareRows = std::numeric_limits<int64_t>::max();

class PackedWeight;

// One linear layer, y = x W^T + b, packed for the CPU: immutable, shared by its copies and by any
// number of threads.
class PackedLinear {
 public:
  // weight: [out, in] row-major (torch layout), copied; bias: [out], or empty for none. The CPU
  // can compute so: see compute_support.h. INTERNAL if oneDNN refuses.
  static absl::StatusOr<PackedLinear> Pack(MatrixView<const float> weight,
                                           absl::Span<const float> bias,
                                           const ComputeMode& mode = {});

  int64_t in_features() const;
  int64_t out_features() const;
  // Bytes of the packed weight, its scales and the bias.
  int64_t bytes() const;
  ProductPlan plan() const;

  // For the files of this folder.
  const PackedWeight& weight() const { return *weight_; }

 private:
  explicit PackedLinear(std::shared_ptr<const PackedWeight> weight) : weight_(std::move(weight)) {}
  std::shared_ptr<const PackedWeight> weight_;
};

// Some neighbouring outputs of a layer: the columns [begin, end) of y, end > begin.
struct LinearColumns {
  const PackedLinear& linear;
  int64_t begin;
  int64_t end;
};

// Two layers, of which the second one takes what the first one gives.
struct LinearPair {
  const PackedLinear& first;
  Activation activation;  // between them
  const PackedLinear& second;
};

// What products need beside their operands, one per instance: room for x as its compute type wants
// it, and scratch memory for each worker of the team. Not thread-safe, save for what writes a
// PreparedOperand.
class GemmWorkspace {
 public:
  explicit GemmWorkspace(int workers);
  // Grows to what `linear`, or the pair, needs for batches of up to `rows` rows, so steady state
  // allocates nothing.
  void Reserve(const PackedLinear& linear, int64_t rows);
  void Reserve(const LinearPair& pair, int64_t rows);
  // The same for a layer that takes what PrepareInner gives.
  void ReserveInner(const PackedLinear& linear, int64_t rows);

  // Room for x [rows, in] as `linear` reads it, for whoever makes x to write row by row; behind it
  // zeros up to PaddedRows(rows). It is good until the next Prepare, or the next product that is
  // not given a good one. Of nothing for kF32.
  PreparedOperand Prepare(const PackedLinear& linear, int64_t rows);
  // The same beside it, for what lies between two layers: good until the next PrepareInner or
  // ApplyLinearPair.
  PreparedOperand PrepareInner(const PackedLinear& linear, int64_t rows);

  // How products of at least that many rows are divided: each worker has a share of the rows, in
  // all columns. Fewer rows, and by default all, are divided among the team panel by panel. No bit
  // depends on it.
  void ShareRowsFrom(int64_t rows);

  GemmWorkspace(GemmWorkspace&&) noexcept;
  ~GemmWorkspace();

  // Of x as the compute types want it. What the workers have does not grow with the rows.
  int64_t operand_bytes() const;

  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// y = activation(x W^T + b). x: [PaddedRows(T), in], y: [PaddedRows(T), out]; their rows are equal,
// a multiple of kRowTile; y must not overlap x. x is rounded or quantised once, row by row, as the
// compute type wants it, unless it comes with an operand that is good, of this workspace; a row of
// int8 that is not finite gives NaN. The activation is applied block by block while the block is in
// cache. `workspace` has had Reserve(linear, at least these rows) and at least team.size() workers.
void ApplyLinear(const ThreadTeam& team, const PackedLinear& linear, const LinearInput& x,
                 MatrixView<float> y, Activation activation, GemmWorkspace& workspace);

// The same for some columns alone, to the bit, without activation. y has room for all of them: up
// to kPanelWidth - 1 columns on either side may get their values too.
void ApplyLinear(const ThreadTeam& team, const LinearColumns& columns, const LinearInput& x,
                 MatrixView<float> y, GemmWorkspace& workspace);

// y = second(activation(first(x))): what two calls of ApplyLinear give, to the bit. Between the
// layers lies `inner`, [rows, out of first]; but kBf16 and kBf16x3 round while a block is in cache,
// and leave `inner` as it was. `workspace` has had Reserve(pair, at least these rows).
void ApplyLinearPair(const ThreadTeam& team, const LinearPair& pair, const LinearInput& x,
                     MatrixView<float> inner, MatrixView<float> y, GemmWorkspace& workspace);

}  // namespace attendant
