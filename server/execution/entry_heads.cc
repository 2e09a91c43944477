// The steps of EntryRun that involve heads.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/kernels/max_sim.h"
#include "engine/layers/pooling.h"
#include "server/execution/entry_run.h"

namespace attendant::server {

void EntryRun::AppendHeadRows(HeadKind head, std::vector<HeadRow>& rows) {
  const ComputeRequest& compute = request();
  if (head == HeadKind::kTokenHead) return AppendTokens(rows);
  if (pooled_ == nullptr || compute.outputs.pooled->head != head) return;
  const int64_t width = pooled_->dim(1);
  if (pools_late(head)) {
    late_ = AlignedBuffer<float>(compute.layout.tokens() * width);
    for (int64_t row = 0; row < compute.layout.tokens(); ++row) rows.push_back({this, row});
    return;
  }
  for (int64_t b = 0; b < compute.layout.sequences; ++b) {
    const int64_t length = compute.layout.length(b);
    if (length > compute.outputs.pooled->PromptOf(b, length)) {
      rows.push_back({this, b});
    } else {
      pooled_->WriteZeros((compute.first_sequence + b) * width, width);
    }
  }
}

bool EntryRun::pools_late(HeadKind head) const {
  return head == HeadKind::kClassifier && request().description().classifier->is_late();
}

void EntryRun::AppendTokens(std::vector<HeadRow>& rows) {
  if (token_vectors_.size() == 0) return;
  scored_tokens_.clear();
  std::fill_n(token_vectors_.data(), token_vectors_.size(), 0.0f);
  const TokenVectorsOutput& wanted = *request().outputs.token_vectors;
  const KeptIds* ids = std::get_if<KeptIds>(&request().input);
  const TokenLayout& layout = request().layout;
  for (int64_t b = 0; b < layout.sequences; ++b) {
    for (int64_t row = layout.cu_seqlens[b]; row < layout.cu_seqlens[b + 1]; ++row) {
      const bool is_first = row == layout.cu_seqlens[b];
      if (is_first && wanted.skips_first) continue;
      if (ids != nullptr && wanted.Skips(ids->words[row])) continue;
      rows.push_back({this, row});
      if (scores_ != nullptr) scored_tokens_.push_back(static_cast<int32_t>(row));
    }
  }
}

void EntryRun::FillHeadRow(HeadKind head, int64_t index, MatrixView<const float> batch_rows,
                           absl::Span<float> input) const {
  const MatrixView<const float> all = RowsOf(batch_rows);
  if (head == HeadKind::kTokenHead || pools_late(head)) {
    std::copy_n(all.row(index), input.size(), input.data());
    return;
  }
  const TokenLayout& layout = request().layout;
  const PooledOutput& pooled = *request().outputs.pooled;
  const TokenRange tokens = request().PooledTokens(index);
  const MatrixView<const float> own =
      all.Rows(layout.cu_seqlens[index] + tokens.first, tokens.count);
  absl::Span<const int32_t> positions;
  if (!layout.leading || tokens.first > 0) {
    positions = layout.positions_of(index).subspan(tokens.first, tokens.count);
  }
  if (head == HeadKind::kNone) {
    Pool({pooled.mode}, own, positions, input);
  } else {
    request().span.model->encoder->Pool(head, own, positions, input);
  }
}

void EntryRun::TakeHeadRow(HeadKind head, int64_t index, absl::Span<float> output) {
  const auto width = static_cast<int64_t>(output.size());
  const Outputs& outputs = request().outputs;
  if (pools_late(head)) {
    std::copy_n(output.data(), width, late_.data() + index * width);
    return;
  }
  const bool is_token = head == HeadKind::kTokenHead;
  if (is_token ? outputs.token_vectors->normalize : outputs.pooled->normalize) {
    NormalizeToUnitLength(output);
  }
  if (is_token) {
    std::copy_n(output.data(), width, token_vectors_.data() + index * width);
  } else {
    pooled_->Write((request().first_sequence + index) * width, output.data(), width);
  }
}

void EntryRun::PlaceLateMeans() {
  const TokenLayout& layout = request().layout;
  const int64_t width = pooled_->dim(1);
  std::vector<float> mean(width);
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const MatrixView<const float> rows = {late_.data() + layout.cu_seqlens[b] * width,
                                          layout.length(b), width, width};
    Pool({PoolingMode::kLateMean}, rows, {}, absl::MakeSpan(mean));
    if (request().outputs.pooled->normalize) NormalizeToUnitLength(absl::MakeSpan(mean));
    pooled_->Write((request().first_sequence + b) * width, mean.data(), width);
  }
}

void EntryRun::AppendScoredSequences(std::vector<HeadRow>& rows) {
  if (scores_ == nullptr) return;
  for (int64_t b = 0; b < request().layout.sequences; ++b) rows.push_back({this, b});
}

void EntryRun::ScoreSequence(int64_t sequence) {
  const TokenLayout& layout = request().layout;
  const int64_t width = request().token_vectors_width();
  const TokenVectorsOutput& wanted = *request().outputs.token_vectors;
  const std::vector<float>& query = *wanted.query;
  const auto query_rows = static_cast<int64_t>(query.size()) / width;
  const auto bound = [&](int32_t row) {
    return absl::c_lower_bound(scored_tokens_, row) - scored_tokens_.begin();
  };
  const auto first = bound(layout.cu_seqlens[sequence]);
  const auto count = bound(layout.cu_seqlens[sequence + 1]) - first;
  float score = MaxSim({query.data(), query_rows, width, width},
                       {token_vectors_.data(), layout.tokens(), width, width},
                       absl::MakeConstSpan(scored_tokens_).subspan(first, count));
  if (wanted.takes_mean && query_rows > 0) score /= static_cast<float>(query_rows);
  scores_->Write(request().first_sequence + sequence, &score, 1);
}

void EntryRun::AppendVocabularySequences(std::vector<VocabularySequence>& sequences) {
  if (!request().outputs.sparse) return;
  const TokenLayout& layout = request().layout;
  const int64_t width = request().description().sparse_width();
  Take([&] {
    sequences.reserve(sequences.size() + layout.sequences);
    const KeptIds* ids = std::get_if<KeptIds>(&request().input);
    sparse_ = AlignedBuffer<float>(layout.sequences * width);
    for (int64_t b = 0; b < layout.sequences; ++b) {
      absl::Span<const int32_t> own_ids;
      if (ids != nullptr) {
        own_ids = absl::MakeConstSpan(ids->words).subspan(layout.cu_seqlens[b], layout.length(b));
      }
      sequences.push_back({first_row_ + layout.cu_seqlens[b],
                           layout.length(b),
                           {sparse_.data() + b * width, static_cast<size_t>(width)},
                           own_ids});
    }
  });
}

void EntryRun::PlaceSparse() {
  const ComputeRequest& whole = job_->request();
  const int64_t width = whole.description().sparse_width();
  auto vectors = NonZeros({sparse_.data(), request().sequences(), width, width});
  job_->ChangeResponse([&](Response& response) {
    if (!response.sparse) response.sparse.emplace(whole.sequences());
    status_.Update(
        response.sparse->Take(request().first_sequence, std::move(vectors), whole.outputs.dtype));
  });
}

}  // namespace attendant::server
