#include "server/execution/cached_vectors.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "server/base/fault.h"
#include "server/models/compute_dtype.h"

namespace attendant::server {
namespace {

bool CanBeCached(const ComputeRequest& request) {
  const Outputs& outputs = request.outputs;
  const bool by_token = outputs.hidden_states || outputs.token_vectors ||
                        !outputs.intermediate_layers.empty() || !outputs.attention.layers.empty();
  return !request.client.empty() && std::holds_alternative<EncodeLayers>(request.operation) &&
         std::holds_alternative<OwnKeys>(request.keys) && !request.bias && !by_token &&
         (outputs.pooled || outputs.sparse);
}

// Describes the sequences of a request to the cache, one after the other.
class SequenceSources {
 public:
  explicit SequenceSources(const ComputeRequest& request) : request_(request) {
    source_.Add(static_cast<int64_t>(CacheKind::kVectors));
    source_.AddText(request.client);
    source_.Add(request.span.model->number.value());
    source_.Add(request.span.first_layer);
    source_.Add(request.span.layers);
    AddOutputs(request.outputs);
    const auto gates = static_cast<int64_t>(request.head_gates.size() * sizeof(float));
    std::copy_n(reinterpret_cast<const char*>(request.head_gates.data()), gates,
                source_.AddBytes(gates));
    source_.Add(static_cast<int64_t>(request.input.index()));
    if (!std::holds_alternative<KeptIds>(request.input)) {
      source_.Add(static_cast<int64_t>(tensor().dtype));
      rows_ = RowsOfTokens(layout());
    }
    shared_ = source_.bytes().size();
  }

  const KeySource& Of(int64_t sequence) {
    source_.Truncate(shared_);
    const auto& pooled = request_.outputs.pooled;
    source_.Add(pooled ? pooled->PromptOf(sequence, request_.layout.length(sequence)) : 0);
    source_.AddNumbers(request_.layout.positions_of(sequence));
    if (const KeptIds* ids = std::get_if<KeptIds>(&request_.input)) {
      for (const auto* list : {&ids->words, &ids->positions, &ids->token_types}) {
        if (list->empty()) {
          source_.AddNumbers({});
        } else {
          source_.AddNumbers(absl::MakeConstSpan(*list).subspan(
              request_.layout.cu_seqlens[sequence], request_.layout.length(sequence)));
        }
      }
    } else if (ArePixels()) {
      source_.AddNumbers(layout().positions_of(sequence));
      const int64_t bytes = tensor().data.size() / tensor().dim(0);
      tensor().data.CopyTo(sequence * bytes, bytes, source_.AddBytes(bytes));
    } else {
      AddRows(sequence);
    }
    return source_;
  }

 private:
  const TokenRows* features() const { return std::get_if<TokenRows>(&request_.input); }
  const CheckedTensor& tensor() const {
    return features() ? features()->tensor : std::get<CheckedTensor>(request_.input);
  }
  // The layout of the tensor.
  const TokenLayout& layout() const { return features() ? features()->layout : request_.layout; }
  bool ArePixels() const { return features() && features()->are_pixels; }

  void AddOutputs(const Outputs& outputs) {
    source_.Add(static_cast<int64_t>(outputs.dtype));
    source_.Add(outputs.sparse ? 1 : 0);
    source_.Add(outputs.pooled ? 1 : 0);
    if (!outputs.pooled) return;
    source_.Add(static_cast<int64_t>(outputs.pooled->head));
    source_.Add(static_cast<int64_t>(outputs.pooled->mode));
    source_.Add(outputs.pooled->normalize ? 1 : 0);
  }

  void AddRows(int64_t sequence) {
    const int64_t width = tensor().data.size() / layout().rows;
    const int32_t first = layout().cu_seqlens[sequence], end = layout().cu_seqlens[sequence + 1];
    source_.AddNumbers(layout().positions_of(sequence));
    char* to = source_.AddBytes((end - first) * width);
    for (int32_t token = first; token < end; ++token, to += width) {
      tensor().data.CopyTo(rows_[token] * width, width, to);
    }
  }

  const ComputeRequest& request_;
  KeySource source_;
  size_t shared_ = 0;          // bytes of `source_` that all sequences have
  std::vector<int64_t> rows_;  // of the tensor, by token
};

int64_t ElementsOf(const ResultCache::Result& result, int64_t pooled_bytes, DataType dtype) {
  const auto bytes = static_cast<int64_t>(result->size()) - pooled_bytes;
  return bytes / (ByteWidth(DataType::kInt32) + ByteWidth(dtype));
}

}  // namespace

std::shared_ptr<CachedVectors> CachedVectors::Find(const ComputeRequest& request,
                                                   ResultCache& cache) {
  if (!CanBeCached(request)) return nullptr;
  return std::shared_ptr<CachedVectors>(new CachedVectors(request, cache));
}

CachedVectors::CachedVectors(const ComputeRequest& request, ResultCache& cache)
    : cache_(cache),
      dtype_(request.outputs.dtype),
      sparse_(request.outputs.sparse),
      tokens_(request.tokens()) {
  if (request.outputs.pooled) width_ = request.pooled_width();
  SequenceSources sources(request);
  std::unordered_map<CacheKey, size_t, absl::Hash<CacheKey>>
      firsts;  // the first sequence with each key
  for (int64_t b = 0; b < request.sequences(); ++b) {
    const CacheKey key = cache.KeyOf(sources.Of(b));
    const auto [first, is_new] = firsts.try_emplace(key, results_.size());
    if (!is_new) {  // not looked up again, because another request may have evicted it
      results_.push_back(results_[first->second]);
      places_.push_back(places_[first->second]);
      continue;
    }
    results_.push_back(cache.Find(CacheKind::kVectors, key));
    places_.push_back(results_.back() != nullptr ? -1 : std::ssize(missing_));
    if (places_.back() < 0) continue;
    missing_.push_back(b);
    missing_keys_.push_back(key);
  }
}

ResultCache::Result CachedVectors::ResultOf(Response& computed, int64_t sequence,
                                            int64_t first_element) const {
  absl::string_view pooled, indices, weights;
  if (width_ > 0) pooled = computed.Find(OutputKind::kPooled)->BytesAt(sequence * width_, width_);
  if (sparse_) {
    const int64_t count = computed.sparse->counts()[sequence];
    indices = computed.sparse->indices().BytesAt(first_element, count);
    weights = computed.sparse->weights().BytesAt(first_element, count);
  }
  return std::make_shared<const std::string>(absl::StrCat(pooled, indices, weights));
}

void CachedVectors::TakeComputed(Response& computed) {
  int64_t first_element = 0;
  std::vector<ResultCache::Result> results;
  for (int64_t i = 0; i < std::ssize(missing_); ++i) {
    results.push_back(ResultOf(computed, i, first_element));
    if (sparse_) first_element += computed.sparse->counts()[i];
    // The request does without.
    Guarded([&] { cache_.Add(missing_keys_[i], results.back()); }).IgnoreError();
  }
  for (size_t b = 0; b < places_.size(); ++b) {
    if (places_[b] >= 0) results_[b] = results[static_cast<size_t>(places_[b])];
  }
}

absl::StatusOr<Response> CachedVectors::Complete(Response computed) {
  TakeComputed(computed);
  const auto cached = static_cast<int32_t>(places_.size() - missing_.size());
  computed.execution.set_tokens(tokens_);
  computed.execution.set_cached_sequences(cached);
  if (cached == 0) return computed;
  RETURN_IF_ERROR(Join(computed));
  return computed;
}

absl::StatusOr<Response> CachedVectors::Answer(const ComputeRequest& request) {
  const ServedModel& model = *request.span.model;
  Response response;
  response.outputs = request.output_tensors();
  response.texts = request.texts;
  response.describes_texts = request.outputs.tokens;
  response.execution.set_truncated_tokens(request.truncated_tokens);
  SetComputeType(model.encoder->mode().type, response.execution);
  response.execution.set_model_version(model.version);
  return Complete(std::move(response));
}

absl::Status CachedVectors::Join(Response& response) const {
  const auto sequences = std::ssize(results_);
  if (width_ > 0) {
    ResponseTensor& pooled = *response.Find(OutputKind::kPooled);
    pooled = ResponseTensor({sequences, width_}, dtype_);
    RETURN_IF_ERROR(pooled.Allocate());
    const auto bytes = static_cast<size_t>(width_ * ByteWidth(dtype_));
    for (int64_t b = 0; b < sequences; ++b) {
      pooled.WriteBytes(b * width_, absl::string_view(*results_[b]).substr(0, bytes));
    }
  }
  return sparse_ ? JoinSparse(response) : absl::OkStatus();
}

absl::Status CachedVectors::JoinSparse(Response& response) const {
  const int64_t before = width_ * ByteWidth(dtype_);
  std::vector<int64_t> counts;
  for (const ResultCache::Result& result : results_) {
    counts.push_back(ElementsOf(result, before, dtype_));
  }
  SparseResponse& sparse = response.sparse.emplace(0);
  RETURN_IF_ERROR(sparse.Allocate(counts, dtype_));
  int64_t first = 0;
  for (size_t b = 0; b < results_.size(); ++b) {
    const absl::string_view bytes = absl::string_view(*results_[b]).substr(before);
    const auto of_indices = static_cast<size_t>(counts[b] * ByteWidth(DataType::kInt32));
    sparse.indices().WriteBytes(first, bytes.substr(0, of_indices));
    sparse.weights().WriteBytes(first, bytes.substr(of_indices));
    first += counts[b];
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
