#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/rules.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/norm/norm.h"
#include "engine/layers/encoder.h"
#include "engine/layers/encoder_impl.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/position_tables.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/check_description.h"
#include "engine/model/model_facts.h"

namespace attendant {
namespace {

// Checks that the layers are within the model, and that each reads the output of the one before it.
absl::Status CheckSpan(const ModelDescription& model, int64_t first_layer, int64_t layers) {
  const bool is_empty = model.layers == 0 && first_layer == 0 && layers == 0;
  const bool is_within = first_layer >= 0 && layers >= 1 && first_layer < model.layers &&
                         layers <= model.layers - first_layer;
  const int64_t input = model.layer.hidden_size, output = model.layer.layer_width();
  Rules rules;
  rules.Require(is_empty || is_within, "layers: expected a span of at least 1 layer in 0..",
                model.layers - 1, "; got first ", first_layer, ", count ", layers);
  rules.Require(layers <= 1 || output == input, "layers: expected 1 layer (a layer maps ", input,
                " columns to ", output, "); got ", layers);
  return rules.status();
}

absl::Status CheckLayer(const ModelDescription& model, int64_t layer) {
  if (layer >= 0 && layer < model.layers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("layer: expected 0..", model.layers - 1, "; got ", layer));
}

// Checks that the layer supports cross-attention if the batch has cross_kv, and does not require it
// otherwise.
absl::Status CheckCrossKvUse(const LayerShape& layer, bool has_cross_kv) {
  if (has_cross_kv) return CheckTakesCrossKv(layer);
  if (!layer.needs_cross_kv()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "memory: required (the layer projects queries from ", layer.hidden_size,
      " columns, keys from ", layer.key_inputs(), " and values from ", layer.value_inputs(), ")"));
}

// Fills `input` with arbitrary numbers of the magnitude of normalized rows.
void FillForTrials(MatrixView<float> input) {
  for (int64_t r = 0; r < input.rows; ++r) {
    for (int64_t c = 0; c < input.cols; ++c) {
      input.row(r)[c] = static_cast<float>((r * 31 + c * 101) % 257 - 128) / 64.0f;
    }
  }
}

// Splits `tokens` into sequences of 64 tokens, or of `longest` if that is less and not 0.
void CutForTrials(int64_t tokens, int64_t longest, std::vector<int32_t>& cu_seqlens) {
  const int64_t length = longest == 0 ? 64 : std::min<int64_t>(64, longest);
  cu_seqlens.clear();
  for (int64_t begin = 0; begin < tokens; begin += length) {
    cu_seqlens.push_back(static_cast<int32_t>(begin));
  }
  cu_seqlens.push_back(static_cast<int32_t>(tokens));
}

}  // namespace

class EncoderRun::Impl {
 public:
  Impl(std::shared_ptr<const Encoder> loaded, int64_t max_tokens, int threads)
      : encoder(std::move(loaded)),
        workspace(encoder->description(), max_tokens, threads, encoder->mode()),
        tables(encoder->impl().position_tables->Find(encoder->description(), max_tokens,
                                                     encoder->impl().relative_positions)),
        batch_run(encoder->description(), workspace, *tables) {
    workspace.norms = encoder->impl().norms;
    workspace.Reserve(encoder->impl().product_uses);
  }

  const Encoder::Impl& model() const { return encoder->impl(); }

  std::shared_ptr<const Encoder> encoder;
  Workspace workspace;
  const std::shared_ptr<const PositionTables> tables;
  BatchRun batch_run;
};

absl::StatusOr<int64_t> EncoderRun::PredictBytes(const ModelDescription& description,
                                                 int64_t max_tokens, int threads,
                                                 const ComputeMode& mode) {
  RETURN_IF_ERROR(CheckDescription(description));
  const CheckedSize bytes = Workspace::Bytes(description, max_tokens, threads, mode) +
                            PositionTables::Bytes(description, max_tokens);
  if (max_tokens < 1 || threads < 1 || !bytes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run: expected at least 1 token and 1 thread, and buffers of less than 2^63 bytes; got ",
        max_tokens, " tokens and ", threads, " threads"));
  }
  return bytes.value();
}

EncoderRun::EncoderRun(std::shared_ptr<const Encoder> encoder, int64_t max_tokens, int threads)
    : impl_(std::make_unique<Impl>(std::move(encoder), max_tokens, threads)) {}
EncoderRun::EncoderRun(EncoderRun&&) noexcept = default;
EncoderRun::~EncoderRun() = default;

const Encoder& EncoderRun::encoder() const { return *impl_->encoder; }
const ThreadTeam& EncoderRun::team() const { return impl_->workspace.team; }

void EncoderRun::SetRowPlan(const RowPlan& plan) {
  impl_->workspace.gemm.ShareRowsFrom(plan.rows_from);
}

RowPlan EncoderRun::ChooseRowPlan(RowPolicy policy, absl::FunctionRef<absl::Time()> now) {
  if (policy != RowPolicy::kTimed) return {.rows_from = policy == RowPolicy::kRows ? 1 : 0};
  const ModelDescription& model = impl_->model().description;
  if (impl_->workspace.team.size() == 1 || model.layer.needs_cross_kv() || model.layers == 0) {
    return {};
  }
  FillForTrials(input().Rows(0, std::min(impl_->workspace.max_tokens, kMostTrialTokens)));
  // Each trial runs another layer, because in production the weights of a layer are evicted from
  // the caches before it runs again.
  int64_t layer = 0;
  RunObserver no_observer;
  std::vector<int32_t> cu_seqlens;
  return TimeRowPlans(
      impl_->workspace.max_tokens,
      [&](int64_t tokens, bool by_rows) {
        CutForTrials(tokens, model.layer.attention.linformer.positions, cu_seqlens);
        SetRowPlan({.rows_from = by_rows ? 1 : 0});
        const auto result =
            Encode(layer++ % model.layers, 1, {.cu_seqlens = cu_seqlens, .bias = {}}, no_observer);
        assert(result.ok());
        static_cast<void>(result);
      },
      now);
}

MatrixView<float> EncoderRun::input() {
  return impl_->workspace.activations.hidden().Rows(0, impl_->workspace.max_tokens);
}

void EncoderRun::Embed(const TokenIds& ids, int64_t first_row) {
  const int64_t rows = static_cast<int64_t>(ids.words.size());
  impl_->model().embeddings->Embed(ids, input().Rows(first_row, rows), impl_->workspace);
}

MatrixView<float> EncoderRun::FeatureRows(int64_t first_row, int64_t rows) {
  if (impl_->model().description.patch_embedding->feature_width == 0)
    return input().Rows(first_row, rows);
  return impl_->workspace.activations.embedded().Rows(0, rows);
}

void EncoderRun::ProjectFeatures(int64_t first_row, int64_t rows) {
  const Encoder::Impl& model = impl_->model();
  if (rows == 0 || model.description.patch_embedding->feature_width == 0) return;
  model.patch_embedding->Project(input().Rows(first_row, rows), impl_->workspace);
}

void EncoderRun::AddPrefixTokens(absl::Span<const int32_t> positions, int64_t first_row) {
  const Encoder::Impl& model = impl_->model();
  const int64_t rows =
      model.description.patch_embedding->prefix_tokens() + static_cast<int64_t>(positions.size());
  model.patch_embedding->Apply(positions, input().Rows(first_row, rows), impl_->workspace);
}

MatrixView<float> EncoderRun::key_input() {
  return impl_->workspace.activations.inputs().Columns(
      0, impl_->model().description.layer.key_inputs());
}

MatrixView<float> EncoderRun::value_input() {
  return impl_->workspace.activations.inputs().Columns(
      0, impl_->model().description.layer.value_inputs());
}

absl::StatusOr<CrossKv> EncoderRun::ProjectCrossKv(int64_t layer, const CrossKvRange& rows) {
  const ModelDescription& model = impl_->model().description;
  RETURN_IF_ERROR(CheckLayer(model, layer));
  RETURN_IF_ERROR(CheckTakesCrossKv(model.layer_at(layer)));
  const int64_t room = impl_->workspace.activations.inputs().rows;
  bool fits = rows.rows >= 0 && rows.rows <= impl_->workspace.max_tokens;
  for (const int64_t first : {rows.first_key, rows.first_value}) {
    fits = fits && first >= 0 && first <= room - PaddedRows(rows.rows);
  }
  if (!fits) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "memory: expected at most ", impl_->workspace.max_tokens, " rows within ", room, "; got ",
        rows.rows, " keys from row ", rows.first_key, " and values from row ", rows.first_value));
  }
  impl_->workspace.fully_masked_rows = 0;
  return impl_->model().layer(layer).ProjectCrossKv(rows, impl_->workspace);
}

absl::StatusOr<MatrixView<const float>> EncoderRun::Attend(int64_t layer, AttendStage stage,
                                                           const PackedBatch& batch,
                                                           RunObserver& observer) {
  const Encoder::Impl& model = impl_->model();
  RETURN_IF_ERROR(CheckLayer(model.description, layer));
  RETURN_IF_ERROR(CheckCrossKvUse(model.description.layer_at(layer), !batch.cross_kv.empty()));
  if (stage == AttendStage::kProjected &&
      !model.description.layer.attention.has_output_projection) {
    return absl::InvalidArgumentError(
        "stage: expected CONTEXT or BLOCK (the model has no output projection); got PROJECTED");
  }
  RETURN_IF_ERROR(impl_->batch_run.Begin(batch, layer, observer));
  LayerRun run = impl_->batch_run.Layer(layer, /*is_last=*/true);
  run.stage = stage;
  return model.layer(layer).Forward(run.Kept(impl_->workspace.activations.hidden()), run).rows;
}

absl::StatusOr<MatrixView<const float>> EncoderRun::Encode(int64_t first_layer, int64_t layers,
                                                           const PackedBatch& batch,
                                                           RunObserver& observer) {
  const Encoder::Impl& model = impl_->model();
  RETURN_IF_ERROR(CheckSpan(model.description, first_layer, layers));
  RETURN_IF_ERROR(CheckCrossKvUse(model.description.layer, false));
  if (!batch.cross_kv.empty()) {
    return absl::InvalidArgumentError(
        "memory: not supported by Encode, in which tokens attend to their own sequence; use "
        "Attend");
  }
  RETURN_IF_ERROR(impl_->batch_run.Begin(batch, first_layer, observer));

  Workspace& workspace = impl_->workspace;
  PreparedRows x = workspace.activations.hidden().Rows(0, batch.tokens());
  const int64_t end = first_layer + layers;
  bool has_all_rows = true;
  for (int64_t layer = first_layer; layer < end; ++layer) {
    if (layer > first_layer && !observer.WantsMore()) {
      return absl::CancelledError(absl::StrCat("run: cancelled before layer ", layer));
    }
    const LayerRun run = impl_->batch_run.Layer(layer, /*is_last=*/layer == end - 1);
    x = model.layer(layer).Forward(x, run);
    has_all_rows = run.selected_rows.empty();
    observer.AfterLayer(layer, x.rows);
  }
  const MatrixView<float> result = x.rows;
  if (end < model.description.layers || !model.exit_norm) return result;
  const auto normalize = [&](MatrixView<float> rows) {
    LayerNorm(workspace.team, rows, workspace.norm(*model.exit_norm), rows);
  };
  if (has_all_rows) {
    normalize(result);
  } else {
    for (const int32_t row : batch.selected_rows) normalize(result.Rows(row, 1));
  }
  return result;
}

void EncoderRun::ApplyHead(HeadKind head, int64_t rows, HeadRowFunction fill,
                           HeadRowFunction take) {
  Workspace& workspace = impl_->workspace;
  const int64_t step = workspace.activations.head_inputs().rows;
  for (int64_t first = 0; first < rows; first += step) {
    const MatrixView<float> made = impl_->model().head(head).Forward(
        std::min(step, rows - first),
        [&](int64_t row, absl::Span<float> input) { fill(first + row, input); }, workspace);
    workspace.team.ParallelFor(made.rows, [&](int, int64_t row) {
      take(first + row, {made.row(row), static_cast<size_t>(made.cols)});
    });
  }
}

void EncoderRun::WeighVocabulary(MatrixView<const float> hidden_states,
                                 absl::Span<const VocabularySequence> sequences) {
  const Encoder::Impl& model = impl_->model();
  if (model.vocabulary_head) {
    return model.vocabulary_head->Weigh(hidden_states, sequences, impl_->workspace);
  }
  WeighTokens(model.head(HeadKind::kLexical), model.description.lexical_head->excluded_ids,
              hidden_states, sequences, impl_->workspace);
}

int64_t EncoderRun::fully_masked_rows() const { return impl_->workspace.fully_masked_rows; }
int64_t EncoderRun::bytes() const { return impl_->workspace.bytes() + impl_->tables->bytes(); }

}  // namespace attendant
