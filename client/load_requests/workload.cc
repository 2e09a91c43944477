#include "client/load_requests/workload.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/load_requests/oip_request.h"

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
  Maker(const WorkloadOptions& options, const Sequences& sequences, const ModelInfo& model)
      : options_(options), sequences_(sequences), model_(model), random_(options.seed) {
    if (options_.token_ids) return;
    std::normal_distribution<float> normal;
    std::vector<float> values(kNormalValues);
    for (float& value : values) value = normal(random_);
    const Tensor drawn = FloatTensor({static_cast<int64_t>(values.size())}, values);
    normal_bytes_ = ConvertFloat(drawn, options_.dtype).value().data;
  }

  // Returns whether the sequences of a file have all been used.
  bool done() const { return sequences_.count() > 0 && next_ == sequences_.count(); }

  WorkItem Make() {
    const size_t first = next_;
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < options_.batch && !done(); ++i) {
      lengths.push_back(sequences_.Length(next_, random_));
      next_ += sequences_.count() > 0 ? 1 : 0;
    }
    const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    const bool padded = options_.padded || options_.protocol == Protocol::kOip;
    std::vector<int64_t> shape = {tokens};
    if (padded) {
      shape = {static_cast<int64_t>(lengths.size()),
               *std::max_element(lengths.begin(), lengths.end())};
    }
    Tensor rows = options_.token_ids ? TokenIds(first, lengths, std::move(shape))
                                     : HiddenStates(std::move(shape));
    return {Request(std::move(lengths), std::move(rows)), tokens};
  }

 private:
  PreparedRequest Request(std::vector<int64_t> lengths, Tensor rows) const {
    if (options_.protocol == Protocol::kOip) return Oip(std::move(lengths), std::move(rows));
    if (options_.method == Method::kAttend) {
      AttendRequest request;
      request.model = options_.model;
      request.lengths = std::move(lengths);
      request.hidden_states = std::move(rows);
      return PreparedRequest::Attend(std::move(request));
    }
    EncodeRequest request;
    request.model = options_.model;
    request.lengths = std::move(lengths);
    request.return_pooled = options_.pooled;
    request.omit_hidden_states = options_.pooled;
    (options_.token_ids ? request.token_ids : request.hidden_states) = std::move(rows);
    return PreparedRequest::Encode(std::move(request));
  }

  PreparedRequest Oip(std::vector<int64_t> lengths, Tensor rows) const {
    const bool takes_more = model_.embeddings().vocabulary() > 0 || model_.has_front();
    const char* suffix = !options_.token_ids && takes_more ? ".hidden" : "";
    const char* output = options_.pooled ? "sentence_embedding" : "last_hidden_state";
    return MakeOipRequest(
        {.model = absl::StrCat(model_.name(), suffix),
         .input = options_.token_ids ? "input_ids" : "hidden_states",
         .rows = std::move(rows),
         .lengths = std::move(lengths),
         .output = options_.method == Method::kAttend ? "context_layer" : output});
  }

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

  // Returns the ids of the sequences from number `first` on, with zeros at padding, or drawn ones.
  Tensor TokenIds(size_t first, const std::vector<int64_t>& lengths, std::vector<int64_t> shape) {
    std::uniform_int_distribution<int64_t> drawn(0, model_.embeddings().vocabulary() - 1);
    std::vector<int64_t> values(static_cast<size_t>(*ElementCount(shape)));
    if (sequences_.ids().empty()) {
      for (int64_t& value : values) value = drawn(random_);
      return Int64Tensor(std::move(shape), values);
    }
    size_t at = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const std::vector<int64_t>& ids = sequences_.ids()[first + i];
      std::copy(ids.begin(), ids.end(), values.begin() + static_cast<std::ptrdiff_t>(at));
      at += shape.size() == 1 ? ids.size() : static_cast<size_t>(shape[1]);
    }
    return Int64Tensor(std::move(shape), values);
  }

  const WorkloadOptions& options_;
  const Sequences& sequences_;
  const ModelInfo& model_;
  std::mt19937_64 random_;
  std::string normal_bytes_;
  size_t next_ = 0;  // of the sequences of a file
};

// Returns INVALID_ARGUMENT, with the line of the file, if the model does not know an id.
absl::Status CheckIds(const std::vector<std::vector<int64_t>>& ids, const ModelInfo& model) {
  const int64_t vocabulary = model.embeddings().vocabulary();
  for (size_t i = 0; i < ids.size(); ++i) {
    for (const int64_t id : ids[i]) {
      if (id >= 0 && id < vocabulary) continue;
      return absl::InvalidArgumentError(absl::StrCat("sequence ", i + 1, ": id ", id,
                                                     " is not below ", vocabulary,
                                                     ", the vocabulary of ", model.name()));
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const WorkloadOptions& options, const Sequences& sequences,
                   const ModelInfo& model) {
  if (options.token_ids && options.method == Method::kAttend) {
    return absl::InvalidArgumentError("attend: expected hidden states; got token ids");
  }
  if (options.pooled && options.method == Method::kAttend) {
    return absl::InvalidArgumentError("attend: pooled vectors not supported");
  }
  if (options.token_ids && model.embeddings().vocabulary() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(model.name(), " does not accept token ids"));
  }
  const int64_t width = options.token_ids ? 1 : model.layer().hidden_size();
  const std::optional<int64_t> elements = ElementCount({options.batch, sequences.longest(), width});
  if (width < 1 || !elements || *elements > kMostRequestBytes / 8) {
    return absl::InvalidArgumentError(absl::StrCat("a request of ", options.batch,
                                                   " sequences of up to ", sequences.longest(),
                                                   " tokens, ", width, " wide, is too large"));
  }
  return CheckIds(sequences.ids(), model);
}

}  // namespace

absl::StatusOr<Workload> Workload::Make(const WorkloadOptions& options, const Sequences& sequences,
                                        const ModelInfo& model) {
  if (absl::Status status = Check(options, sequences, model); !status.ok()) return status;
  Maker maker(options, sequences, model);
  const bool listed = sequences.count() > 0;
  Workload workload;
  int64_t bytes = 0;
  while (listed ? !maker.done()
                : workload.items_.empty() || (workload.size() < kMostItems && bytes < kMostBytes)) {
    workload.items_.push_back(maker.Make());
    bytes += workload.items_.back().request.bytes();
    if (listed && bytes > kMostRequestBytes) {
      return absl::InvalidArgumentError(absl::StrCat("expected at most 1 GiB of requests, about ",
                                                     workload.size(), " of them; got more"));
    }
  }
  return workload;
}

double Workload::mean_tokens() const {
  double sum = 0;
  for (const WorkItem& item : items_) sum += static_cast<double>(item.tokens);
  return sum / static_cast<double>(items_.size());
}

}  // namespace attendant::client
