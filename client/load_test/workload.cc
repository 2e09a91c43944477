#include "client/load_test/workload.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.pb.h"

namespace attendant::client {
namespace {

constexpr size_t kMostItems = 512;
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kMostRequestBytes = int64_t{1} << 30;
// Requests take their values from a table of this many, because drawing each value would take too
// long. It is not a multiple of any hidden width, so that rows differ.
constexpr size_t kNormalValues = (1 << 20) - 3;

class Maker {
 public:
  Maker(const WorkloadOptions& options, const LengthDistribution& lengths, const ModelInfo& model)
      : options_(options), lengths_(lengths), model_(model), random_(options.seed) {
    if (options_.token_ids) return;
    std::normal_distribution<float> normal;
    std::vector<float> values(kNormalValues);
    for (float& value : values) value = normal(random_);
    const Tensor drawn = FloatTensor({static_cast<int64_t>(values.size())}, values);
    normal_bytes_ = ConvertFloat(drawn, options_.dtype).value().data;
  }

  WorkItem Make() {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < options_.batch; ++i) lengths.push_back(lengths_.Draw(random_));
    const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    std::vector<int64_t> shape = {tokens};
    if (options_.padded)
      shape = {options_.batch, *std::max_element(lengths.begin(), lengths.end())};
    if (options_.method == Method::kAttend) {
      AttendRequest request;
      request.model = options_.model;
      request.lengths = std::move(lengths);
      request.hidden_states = HiddenStates(std::move(shape));
      return {PreparedRequest::Attend(std::move(request)), tokens};
    }
    EncodeRequest request;
    request.model = options_.model;
    request.lengths = std::move(lengths);
    request.return_pooled = options_.pooled;
    request.omit_hidden_states = options_.pooled;
    if (options_.token_ids) {
      request.token_ids = TokenIds(std::move(shape));
    } else {
      request.hidden_states = HiddenStates(std::move(shape));
    }
    return {PreparedRequest::Encode(std::move(request)), tokens};
  }

 private:
  Tensor HiddenStates(std::vector<int64_t> shape) {
    shape.push_back(model_.layer().hidden_size());
    const int64_t width = ByteWidth(options_.dtype);
    const auto bytes = static_cast<size_t>(*ElementCount(shape) * width);
    size_t from = random_() % kNormalValues * static_cast<size_t>(width);
    Tensor tensor{options_.dtype, std::move(shape), {}};
    tensor.data.reserve(bytes);
    while (tensor.data.size() < bytes) {
      tensor.data.append(normal_bytes_, from, bytes - tensor.data.size());
      from = 0;
    }
    return tensor;
  }

  Tensor TokenIds(std::vector<int64_t> shape) {
    std::uniform_int_distribution<int64_t> ids(0, model_.embeddings().vocabulary() - 1);
    std::vector<int64_t> values(static_cast<size_t>(*ElementCount(shape)));
    for (int64_t& value : values) value = ids(random_);
    return Int64Tensor(std::move(shape), values);
  }

  const WorkloadOptions& options_;
  const LengthDistribution& lengths_;
  const ModelInfo& model_;
  std::mt19937_64 random_;
  std::string normal_bytes_;
};

absl::Status Check(const WorkloadOptions& options, const LengthDistribution& lengths,
                   const ModelInfo& model) {
  if (options.token_ids && options.method == Method::kAttend) {
    return absl::InvalidArgumentError("attend takes hidden states, not token ids");
  }
  if (options.pooled && options.method == Method::kAttend) {
    return absl::InvalidArgumentError("attend has no pooled vectors");
  }
  if (options.token_ids && model.embeddings().vocabulary() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(model.name(), " takes no token ids"));
  }
  const int64_t width = options.token_ids ? 1 : model.layer().hidden_size();
  const std::optional<int64_t> elements = ElementCount({options.batch, lengths.longest(), width});
  if (width < 1 || !elements || *elements > kMostRequestBytes / 8) {
    return absl::InvalidArgumentError(absl::StrCat("a request of ", options.batch,
                                                   " sequences of up to ", lengths.longest(),
                                                   " tokens, ", width, " wide, is too large"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Workload> Workload::Make(const WorkloadOptions& options,
                                        const LengthDistribution& lengths, const ModelInfo& model) {
  if (absl::Status status = Check(options, lengths, model); !status.ok()) return status;
  Maker maker(options, lengths, model);
  Workload workload;
  int64_t bytes = 0;
  while (workload.items_.empty() || (workload.size() < kMostItems && bytes < kMostBytes)) {
    workload.items_.push_back(maker.Make());
    bytes += workload.items_.back().request.bytes();
  }
  return workload;
}

double Workload::mean_tokens() const {
  double sum = 0;
  for (const WorkItem& item : items_) sum += static_cast<double>(item.tokens);
  return sum / static_cast<double>(items_.size());
}

}  // namespace attendant::client
