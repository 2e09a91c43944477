// Linear layers: y = activation(x W^T + b), by matrix products over weights that were packed once.
//
// A row of the result has the same bits whatever other rows are computed with it and on however
// many threads, for one instruction set and oneDNN version. To that end every product runs on one
// thread and on row tiles of a few fixed sizes, and a check, when a shape is first packed, keeps
// only those sizes for which a row's bits depend neither on the size nor on the row's position in
// the tile. The products that are not oneDNN's need no check. Where AMX fails it for bfloat16, the
// check finds a K block that passes, and the sums of the blocks are added in float32.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/page_arena.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/gemm/linear_rows.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {

// The argument of GemmWorkspace::ShareRowsFrom for which rows are never shared.
inline constexpr int64_t kNeverShareRows = std::numeric_limits<int64_t>::max();

class PackedWeight;

// One linear layer, y = x W^T + b, packed for the CPU. Immutable; copies share the packed weight,
// and any number of threads may use it.
class PackedLinear {
 public:
  // Packs a layer. weight: [out, in] in row-major order (torch's layout), which is copied; bias:
  // [out], or empty for none. The threads of `team` share the work; the packed weight lies in
  // `arena`. CheckComputeMode (compute_support.h) must have accepted `mode`. INTERNAL if oneDNN
  // refuses.
  static absl::StatusOr<PackedLinear> Pack(MatrixView<const float> weight,
                                           absl::Span<const float> bias,
                                           const ComputeMode& mode = {},
                                           const ThreadTeam& team = ThreadTeam(1),
                                           PageArena arena = {});

  int64_t in_features() const;
  int64_t out_features() const;
  // Bytes of the packed weight, its scales and the bias.
  int64_t bytes() const;
  ProductPlan plan() const;

  // Only for the files of this folder.
  const PackedWeight& weight() const { return *weight_; }

 private:
  explicit PackedLinear(std::shared_ptr<const PackedWeight> weight) : weight_(std::move(weight)) {}
  std::shared_ptr<const PackedWeight> weight_;
};

// A linear layer, or neighbouring outputs of it: the columns [begin, end) of y, end > begin. Refers
// to `linear`, which must outlive it.
struct LinearColumns {
  LinearColumns(const PackedLinear& all)  // NOLINT(google-explicit-constructor)
      : LinearColumns(all, 0, all.out_features()) {}
  LinearColumns(const PackedLinear& some, int64_t first, int64_t last)
      : linear(some), begin(first), end(last) {}

  const PackedLinear& linear;
  int64_t begin;
  int64_t end;
};

// The memory that products need apart from their operands, one per instance: room for x in the
// number format of the compute type, and scratch for each worker of the team. Not thread-safe,
// except that several workers may write one PreparedOperand.
class GemmWorkspace {
 public:
  explicit GemmWorkspace(int workers);
  // Grows to what `linear` needs for batches of up to `rows` rows. Products that fit into what was
  // reserved allocate nothing.
  void Reserve(const PackedLinear& linear, int64_t rows);
  // Grows likewise, for a layer whose operand PrepareInner makes.
  void ReserveInner(const PackedLinear& linear, int64_t rows);

  // Returns room for x [rows, in] in the format that every layer of that many inputs and that mode
  // reads, with zeros after it up to PaddedRows(rows). The code that makes x writes it, row by row.
  // It is valid until the next Prepare, or until a product is called without a valid operand. Empty
  // for kF32, which reads x itself, and if nothing has been reserved for such a layer and so many
  // rows, because then no product will read it.
  PreparedOperand Prepare(const ComputeMode& mode, int64_t in, int64_t rows);
  // Returns a second such room, for the rows between two layers. It is valid until the next
  // PrepareInner.
  PreparedOperand PrepareInner(const ComputeMode& mode, int64_t in, int64_t rows);

  // From now on products of at least `rows` rows are divided by rows: each worker has a share of
  // the rows, in all columns. Products of fewer rows, and by default all products, are divided
  // among the team panel by panel. No bit of a result depends on this.
  void ShareRowsFrom(int64_t rows);

  GemmWorkspace(GemmWorkspace&&) noexcept;
  ~GemmWorkspace();

  // Bytes of the room for x. It leaves out the workers' scratch, which does not grow with the rows.
  int64_t operand_bytes() const;

  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Computes y = activation(x W^T + b). x: [PaddedRows(T), in]; y has the same number of rows, a
// multiple of kRowTile, and must not overlap x. x is rounded or quantised once, row by row, as the
// compute type demands, unless it comes with a valid operand of this workspace. In int8 a row that
// is not finite gives NaN. The activation is applied block by block while a block is in cache. Of
// some columns, y is rows that have room for all of them: up to kPanelWidth - 1 columns on either
// side may get their values too. `workspace` must have at least team.size() workers, and Reserve
// must have been called on it for the layer and at least as many rows.
void ApplyLinear(const ThreadTeam& team, const LinearColumns& columns, const LinearInput& x,
                 const LinearOutput& y, Activation activation, GemmWorkspace& workspace);

}  // namespace attendant
