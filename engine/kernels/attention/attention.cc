#include "engine/kernels/attention/attention.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/rounding.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/linear_attention.h"
#include "engine/kernels/isa.h"

namespace attendant {
namespace {

// Blocks of queries are smaller if larger ones would give a thread fewer items than this.
constexpr int64_t kItemsPerThread = 4;
constexpr int64_t kFewQueries = 96;

AttentionBias BiasOfHead(const AttentionBias* bias, int64_t head) {
  if (bias == nullptr) return {};
  AttentionBias of_head = *bias;
  of_head.data += head * bias->head_stride;
  return of_head;
}

RelativeScores RelativeOfHead(const RelativeScores& relative, int64_t head, int64_t width) {
  RelativeScores of_head = relative;
  if (relative.keys.data != nullptr) of_head.keys = relative.keys.Columns(head * width, width);
  if (relative.queries.data != nullptr) {
    of_head.queries = relative.queries.Columns(head * width, width);
  }
  return of_head;
}

int64_t NumberOf(const AttentionShape& shape, int64_t head) {
  return shape.head_numbers.empty() ? head : shape.head_numbers[head];
}

float GateOf(const AttentionShape& shape, const AttentionSequence& sequence, int64_t head) {
  return sequence.head_gates == nullptr ? 1.0f : sequence.head_gates[NumberOf(shape, head)];
}

// Multiplies the rows by the gate. A gate of 0 writes zeros, whatever the content, and a gate of 1
// changes no bits.
void ApplyGate(float gate, MatrixView<float> rows) {
  if (gate == 1.0f) return;
  for (int64_t r = 0; r < rows.rows; ++r) {
    float* row = rows.row(r);
    for (int64_t i = 0; i < rows.cols; ++i) row[i] = gate == 0.0f ? 0.0f : row[i] * gate;
  }
}

AttentionOperands OperandsOf(const AttentionShape& shape) {
  const ComputeMode& mode = shape.mode;
  if (!AttendsInBf16(mode.type) || shape.kind == AttentionKind::kAdditive) {
    return AttentionOperands::kF32;
  }
  if (mode.emulate) return AttentionOperands::kRounded;
  if (HasAmxUnits()) return AttentionOperands::kTiles;
  return HasBf16Units() ? AttentionOperands::kPairs : AttentionOperands::kF32;
}

AttentionBlock BlockOf(const AttentionShape& shape, const AttentionInput& input,
                       const AttentionSequence& sequence, int64_t head, MatrixView<float> context) {
  const auto own = [&](auto view) { return view.Rows(sequence.row_begin, sequence.length); };
  const auto of = [&](auto view, int64_t number, int64_t width) {
    return view.Columns(number * width, width);
  };
  const int64_t shared = head * shape.kv_heads() / shape.heads;
  const int64_t depth = input.are_pairs ? 2 : 1;
  const CrossKv attended = sequence.cross_kv != nullptr
                               ? *sequence.cross_kv
                               : CrossKv{own(input.keys), own(input.values), sequence.positions};
  AttentionBlock block;
  block.queries = of(own(input.queries), head, shape.key_width / depth);
  block.keys = of(attended.keys, shared, shape.key_width / depth);
  block.values = of(attended.values, shared, shape.value_width / depth);
  block.context = of(own(context), head, shape.value_width);
  block.causal = shape.causal;
  block.are_pairs = input.are_pairs;
  block.scale = shape.score_scale;
  block.positions = sequence.positions;
  block.key_positions = attended.positions;
  block.pattern = shape.pattern;
  const int64_t last = block.keys.rows - 1;
  const int64_t extent = last < 0 ? 0 : block.KeyPosition(last) - block.KeyPosition(0) + 1;
  block.window = extent > shape.pattern.full_up_to ? shape.window : 0;
  block.bias = BiasOfHead(sequence.bias, NumberOf(shape, head));
  block.distances = BiasOfHead(input.distances, NumberOf(shape, head));
  if (input.score_weights != nullptr) {
    block.score_weights = input.score_weights + head * shape.key_width;
  }
  block.relative = RelativeOfHead(input.relative, head, shape.key_width);
  if (sequence.probabilities != nullptr) {
    block.probabilities = sequence.probabilities + head * sequence.length * sequence.keys();
  }
  return block;
}

void KeepQueries(int64_t begin, int64_t count, AttentionBlock& block) {
  block.queries = block.queries.Rows(begin, count);
  block.context = block.context.Rows(begin, count);
  block.first_query = begin;
  if (block.probabilities != nullptr) block.probabilities += begin * block.keys.rows;
}

// Multiplies the context of a head by its gate and writes it to the packed context. `rows` are the
// rows of the batch from `first` on.
void FinishHead(float gate, const PackedInput& packed, int worker, int64_t head, int64_t first,
                MatrixView<float> rows) {
  ApplyGate(gate, rows);
  packed.WriteRows(worker, first, rows, head * rows.cols);
}

// Returns the number of floats of a worker's state: the sum or the mix of the keys and values of a
// head, in attention without a score per query and key.
int64_t StateSize(const AttentionShape& shape) {
  if (IsLinear(shape.kind)) return LinearStateSize(shape.key_width, shape.value_width);
  const auto rows = RoundUpToPanel(shape.linformer.keys);
  return shape.kind == AttentionKind::kLinformer ? rows * (shape.key_width + shape.value_width) : 0;
}

// Sets the arrays of a worker's scratch memory, which begins at `memory`. Returns the number of
// floats that they take. If `memory` is null, only counts them.
int64_t DivideScratch(const AttentionShape& shape, int64_t max_length, float* memory,
                      AttentionScratch& scratch) {
  const int64_t most_keys = std::max({max_length, shape.linformer.keys, int64_t{1}});
  const int64_t block = RoundUpToPanel(std::min(most_keys, kKeyBlock));
  const int64_t value_width = RoundUpToPanel(shape.value_width);
  const int64_t key_width = RoundUpToPanel(shape.key_width);
  int64_t taken = 0;
  const auto take = [&](int64_t size) {
    const int64_t first = std::exchange(taken, taken + size);
    return memory == nullptr ? nullptr : memory + first;
  };
  scratch = {.queries = take(kMaxPanelWidth * key_width),
             .keys = take(block * key_width),
             .values = take(block * value_width),
             .scores = take(block * kMaxPanelWidth),
             .bias = take(block * kMaxPanelWidth),
             .tokens = take(shape.relative_rows > 0 ? kMaxPanelWidth * key_width : 0),
             .query_positions = take(kMaxPanelWidth * shape.relative_rows),
             .key_positions = take(block * shape.relative_rows),
             .context = take(kMaxQueries * value_width),
             .state = take(StateSize(shape)),
             .maxima = take(kMaxQueries),
             .sums = take(kMaxQueries)};
  return taken;
}

}  // namespace

class AttentionWorkspace::Impl {
 public:
  Impl(int workers, const AttentionShape& shape, int64_t max_length)
      : operands(OperandsOf(shape)), scratch(workers) {
    AttentionScratch counted;
    const int64_t floats = DivideScratch(shape, max_length, nullptr, counted);
    for (AttentionScratch& of_worker : scratch) {
      memory_.emplace_back(floats);
      DivideScratch(shape, max_length, memory_.back().data(), of_worker);
    }
  }

  const AttentionOperands operands;
  std::vector<AttentionScratch> scratch;  // one per worker
  // The indices of a run's sequences in descending order of keys, and the first item of each in
  // this order.
  std::vector<int64_t> order;
  std::vector<int64_t> first_item;

 private:
  std::vector<AlignedBuffer<float>> memory_;
};

namespace {

// The inputs and outputs of all items of a call.
struct AttentionCall {
  const AttentionShape& shape;
  const AttentionInput& input;
  absl::Span<const AttentionSequence> sequences;
  const PreparedRows& context;
  AttentionWorkspace::Impl& workspace;
};

// Returns the head with mixed keys and values.
AttentionBlock MixedKeys(const AttentionShape& shape, const AttentionInput& input,
                         const AttentionBlock& block, const AttentionScratch& scratch) {
  AttentionBlock mixed = block;
  const MatrixView<float> keys = {scratch.state, shape.linformer.keys, shape.key_width,
                                  shape.key_width};
  const MatrixView<float> values = {
      scratch.state + RoundUpToPanel(shape.linformer.keys) * keys.cols, shape.linformer.keys,
      shape.value_width, shape.value_width};
  MixRows(input.key_mixing, block.key_positions, block.keys, keys);
  MixRows(input.value_mixing, block.key_positions, block.values, values);
  mixed.keys = keys;
  mixed.values = values;
  mixed.key_positions = {};
  mixed.window = 0;
  return mixed;
}

void AttendMixed(const AttentionSequence& sequence, const AttentionBlock& head,
                 const AttentionScratch& scratch) {
  const int64_t end = sequence.first_query + sequence.queries;
  for (int64_t begin = sequence.first_query; begin < end; begin += kMaxQueries) {
    AttentionBlock block = head;
    block.probabilities = nullptr;
    KeepQueries(begin, std::min(kMaxQueries, end - begin), block);
    AttendHeads({&block, 1}, scratch);
  }
}

LinearState StateOfHead(const AttentionShape& shape, const LinearState& state, int64_t head) {
  const int64_t first = head * LinearStateSize(shape.key_width, shape.value_width);
  return {state.before == nullptr ? nullptr : state.before + first,
          state.after == nullptr ? nullptr : state.after + first};
}

// Computes one item per sequence and head.
void AttendLinear(const ThreadTeam& team, const AttentionCall& call) {
  const int64_t items = static_cast<int64_t>(call.sequences.size()) * call.shape.heads;
  team.ParallelFor(items, [&call](int worker, int64_t item) {
    const auto& [shape, input, sequences, context, workspace] = call;
    const AttentionSequence& sequence = sequences[item / shape.heads];
    const int64_t head = item % shape.heads;
    const LinearState state = StateOfHead(shape, sequence.state, head);
    if (sequence.queries == 0 && state.after == nullptr) return;
    AttentionBlock block = BlockOf(shape, input, sequence, head, context.rows);
    block.operands = workspace.operands;
    const AttentionScratch& scratch = workspace.scratch[worker];
    const MatrixView<float> rows = block.context.Rows(sequence.first_query, sequence.queries);
    if (shape.kind == AttentionKind::kLinformer) {
      AttendMixed(sequence, MixedKeys(shape, input, block, scratch), scratch);
    } else {
      KeepQueries(sequence.first_query, sequence.queries, block);
      block.causal = shape.kind == AttentionKind::kCausalLinear;
      AttendLinearHead(block, state.before, state.after != nullptr ? state.after : scratch.state);
    }
    FinishHead(GateOf(shape, sequence, head), context.packed, worker, head,
               sequence.row_begin + sequence.first_query, rows);
  });
}

// Returns the number of heads with shared keys and values that fit into an item.
int64_t MostSharing(const AttentionShape& shape) {
  if (shape.heads == 0) return 1;  // all heads of the layer are pruned
  const int64_t group = shape.heads / shape.kv_heads();
  int64_t heads = std::min(group, kMostSharing);
  while (group % heads != 0) --heads;
  return heads;
}

// The items of a call. An item is some queries of a sequence, for heads that share keys and values.
struct ItemPlan {
  int64_t heads;
  int64_t queries;  // at most
};

struct Item {
  int64_t first_head;
  int64_t heads;
  int64_t first_query;
  int64_t queries;
};

// Sets the first item of each sequence, and returns the number of items.
int64_t CountItems(const AttentionCall& call, const ItemPlan& plan) {
  std::vector<int64_t>& first_item = call.workspace.first_item;
  first_item.assign(1, 0);
  for (const int64_t i : call.workspace.order) {
    first_item.push_back(first_item.back() +
                         call.shape.heads / plan.heads *
                             CeilDivide(call.sequences[i].queries, plan.queries));
  }
  return first_item.back();
}

// Chooses large items, which pack keys and values rarely, unless there would be too few. Counts the
// items of the plan that it returns.
ItemPlan ChooseItems(const AttentionCall& call, int threads) {
  const int64_t sharing = MostSharing(call.shape);
  const int64_t most = kMaxQueries / sharing / kMaxPanelWidth * kMaxPanelWidth;
  for (const ItemPlan& plan : {ItemPlan{sharing, most}, {sharing, std::min(most, kFewQueries)}}) {
    if (CountItems(call, plan) >= kItemsPerThread * threads) return plan;
  }
  const ItemPlan smallest = {1, kFewQueries};
  CountItems(call, smallest);
  return smallest;
}

Item ItemOf(const AttentionCall& call, const ItemPlan& plan, int64_t number, int64_t rank) {
  const AttentionSequence& sequence = call.sequences[call.workspace.order[rank]];
  const int64_t blocks = CeilDivide(sequence.queries, plan.queries);
  const int64_t in_sequence = number - call.workspace.first_item[rank];
  const int64_t begin = in_sequence % blocks * plan.queries;
  return {in_sequence / blocks * plan.heads, plan.heads, sequence.first_query + begin,
          std::min(plan.queries, sequence.queries - begin)};
}

// Returns the number of fully masked rows.
int64_t AttendItem(const AttentionCall& call, const AttentionSequence& sequence, const Item& item,
                   int worker) {
  const auto& [shape, input, sequences, context, workspace] = call;
  AttentionBlock blocks[kMostSharing];
  size_t attended = 0;
  const int64_t end = item.first_head + item.heads;
  for (int64_t head = item.first_head; head < end; ++head) {
    AttentionBlock& block = blocks[attended];
    block = BlockOf(shape, input, sequence, head, context.rows);
    KeepQueries(item.first_query, item.queries, block);
    block.operands = workspace.operands;
    if (GateOf(shape, sequence, head) != 0.0f || block.probabilities != nullptr) ++attended;
  }
  for (AttentionBlock& block : blocks) block.sharing = static_cast<int64_t>(attended);
  int64_t fully_masked = 0;
  if (attended > 0) fully_masked = AttendHeads({blocks, attended}, workspace.scratch[worker]);
  const int64_t first_row = sequence.row_begin + item.first_query, width = shape.value_width;
  for (int64_t head = item.first_head; head < end; ++head) {
    FinishHead(GateOf(shape, sequence, head), context.packed, worker, head, first_row,
               context.rows.Rows(first_row, item.queries).Columns(head * width, width));
  }
  return fully_masked;
}

}  // namespace

bool AcceptsBf16Pairs(const AttentionShape& shape) {
  return OperandsOf(shape) == AttentionOperands::kPairs && shape.kind == AttentionKind::kSoftmax &&
         shape.relative_rows == 0 && shape.key_width % 2 == 0 && shape.value_width % 2 == 0;
}

AttentionWorkspace::AttentionWorkspace(int workers, const AttentionShape& shape, int64_t max_length)
    : impl_(std::make_unique<Impl>(workers, shape, max_length)) {}
AttentionWorkspace::~AttentionWorkspace() = default;

int64_t Attention(const ThreadTeam& team, const AttentionShape& shape, const AttentionInput& input,
                  absl::Span<const AttentionSequence> sequences, const PreparedRows& context,
                  AttentionWorkspace& workspace) {
  const AttentionCall call = {shape, input, sequences, context, workspace.impl()};
  if (!ScoresPairs(shape.kind)) {
    AttendLinear(team, call);
    return 0;
  }
  std::vector<int64_t>& order = call.workspace.order;
  order.resize(sequences.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t keys_a = sequences[a].keys(), keys_b = sequences[b].keys();
    return keys_a != keys_b ? keys_a > keys_b : a < b;
  });
  const ItemPlan plan = ChooseItems(call, team.size());
  const std::vector<int64_t>& first_item = call.workspace.first_item;
  std::atomic<int64_t> fully_masked = 0;
  team.ParallelFor(first_item.back(), [&](int worker, int64_t item) {
    const auto after = std::upper_bound(first_item.begin(), first_item.end(), item);
    const int64_t rank = after - first_item.begin() - 1;
    fully_masked.fetch_add(
        AttendItem(call, sequences[order[rank]], ItemOf(call, plan, item, rank), worker),
        std::memory_order_relaxed);
  });
  return fully_masked.load();
}

}  // namespace attendant
