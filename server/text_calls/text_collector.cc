#include "server/text_calls/text_collector.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text_calls/text_models.h"

namespace attendant::server {
namespace {

// In JSON, at most or about: a number, the text around an input, a token.
constexpr int64_t kNumberBytes = 16, kInputBytes = 128, kTokenBytes = 160;

ScoreFunction FunctionFor(const TextTask& task, const Tokenization& tokenization) {
  if (task.wish == TextWish::kEntities) return ScoreFunction::kSoftmax;
  if (task.wish != TextWish::kScores || task.scores == ScoresFor::kRaw || task.interacts) {
    return ScoreFunction::kPlain;
  }
  if (task.scores == ScoresFor::kSoftmax) return ScoreFunction::kSoftmax;
  if (task.scores == ScoresFor::kSigmoid) return ScoreFunction::kSigmoid;
  return task.scores == ScoresFor::kRanking ? tokenization.rank_scores : tokenization.class_scores;
}

// Of a vector in the result: the first `dimensions` numbers if the task says so.
int64_t WidthOf(const TextTask& task, const ServedModel& model) {
  const ModelDescription& description = model.encoder->description();
  const int64_t hidden_size = description.layer.hidden_size;
  switch (task.wish) {
    case TextWish::kVectors:
      return task.dimensions.value_or(TextVectorWidth(model));
    case TextWish::kTokenVectors:
      return IsMultiVector(model) ? description.token_head->width(hidden_size) : hidden_size;
    case TextWish::kScores:
      if (task.interacts) return 1;
      return description.classifier->width(hidden_size);
    case TextWish::kEntities:
      return description.token_head->width(hidden_size);
    case TextWish::kSparse:
    case TextWish::kTokens:
      break;
  }
  return 0;
}

std::vector<std::string> LabelsOf(const TextTask& task, const ServedModel& model, int64_t width) {
  if (task.wish != TextWish::kScores && task.wish != TextWish::kEntities) return {};
  std::vector<std::string> labels = model.tokenization->labels;
  for (auto i = static_cast<int64_t>(labels.size()); i < width; ++i) {
    labels.push_back(absl::StrCat("LABEL_", i));
  }
  return labels;
}

// Elements of 4 bytes.
template <typename T>
class Elements {
 public:
  explicit Elements(ResponseTensor& tensor) : data_(tensor.TakeData()) {}
  void CopyTo(int64_t first, int64_t count, T* to) const {
    std::memcpy(to, data_.begin() + first * sizeof(T), count * sizeof(T));
  }
  T at(int64_t i) const {
    T value;
    CopyTo(i, 1, &value);
    return value;
  }

 private:
  const grpc::Slice data_;
};

// A vector that had length 1 before it was cut has it again.
void Shorten(const std::vector<float>& vector, absl::Span<float> to) {
  const auto length_of = [](absl::Span<const float> numbers) {
    double sum = 0;
    for (const float number : numbers) sum += double{number} * number;
    return std::sqrt(sum);
  };
  std::copy_n(vector.begin(), to.size(), to.begin());
  if (std::abs(length_of(vector) - 1) >= 1e-3) return;
  const double length = std::max<double>(length_of(to), std::numeric_limits<float>::min());
  for (float& number : to) number = static_cast<float>(number / length);
}

}  // namespace

void ApplyScores(ScoreFunction function, absl::Span<float> outputs) {
  if (function == ScoreFunction::kPlain || outputs.empty()) return;
  if (function == ScoreFunction::kSigmoid ||
      (function == ScoreFunction::kUnknown && outputs.size() == 1)) {
    for (float& output : outputs) {
      const double small = std::exp(-std::abs(double{output}));  // so that nothing overflows
      output = static_cast<float>((output >= 0 ? 1 : small) / (1 + small));
    }
    return;
  }
  const double most = *std::max_element(outputs.begin(), outputs.end());
  double sum = 0;
  for (const float output : outputs) sum += std::exp(output - most);
  for (float& output : outputs) output = static_cast<float>(std::exp(output - most) / sum);
}

TextCollector::TextCollector(const TextTask& task, const ServedModel& model,
                             const std::string& name)
    : task_(task),
      function_(FunctionFor(task, *model.tokenization)),
      is_multi_vector_(IsMultiVector(model)) {
  result_.model = name;
  result_.width = WidthOf(task, model);
  result_.labels = LabelsOf(task, model, result_.width);
  const auto inputs = static_cast<int64_t>(task.inputs.size());
  Grow(inputs * static_cast<int64_t>(sizeof(int64_t)), inputs * kInputBytes);
  if (task.wish == TextWish::kVectors || task.wish == TextWish::kScores) {
    const int64_t numbers = inputs * result_.width;
    Grow(numbers * static_cast<int64_t>(sizeof(float)), numbers * kNumberBytes);
  }
}

void TextCollector::Grow(int64_t bytes, int64_t answer_bytes) {
  bytes_ += bytes;
  answer_bytes_ += answer_bytes;
}

void TextCollector::Begin() {
  const size_t inputs = task_.inputs.size();
  result_.tokens.resize(inputs);
  switch (task_.wish) {
    case TextWish::kVectors:
    case TextWish::kScores:
      result_.numbers.resize(inputs * static_cast<size_t>(result_.width));
      break;
    case TextWish::kTokenVectors:
      token_rows_.resize(inputs);
      break;
    case TextWish::kSparse:
      result_.sparse.resize(inputs);
      break;
    case TextWish::kEntities:
      token_rows_.resize(inputs);
      result_.texts.resize(inputs);
      break;
    case TextWish::kTokens:
      result_.texts.resize(inputs);
      break;
  }
}

void TextCollector::Take(const TextPart& part, Response response) {
  for (size_t i = 0; i < part.size(); ++i) {
    const std::optional<std::vector<int32_t>>& ids = task_.inputs[part[i]].ids;
    const size_t tokens = ids ? ids->size() : response.texts->texts[i].ids.size();
    result_.tokens[part[i]] = static_cast<int64_t>(tokens);
    if (task_.wish == TextWish::kEntities) TakeTokens(part[i], response.texts->Describe(i));
  }
  switch (task_.wish) {
    case TextWish::kScores:
      if (task_.interacts) return TakeScores(part, *response.Find(OutputKind::kScores));
      return TakeRows(part, *response.Find(OutputKind::kPooled));
    case TextWish::kVectors:
      return TakeRows(part, *response.Find(OutputKind::kPooled));
    case TextWish::kSparse:
      return TakeSparse(part, *response.sparse);
    case TextWish::kTokenVectors:
      return TakeTokenRows(part, *response.Find(is_multi_vector_ ? OutputKind::kTokenVectors
                                                                 : OutputKind::kHiddenStates));
    case TextWish::kEntities:
      return TakeTokenRows(part, *response.Find(OutputKind::kTokenVectors));
    case TextWish::kTokens:
      break;
  }
}

void TextCollector::TakeTokens(size_t input, v1::TextTokens tokens) {
  const int64_t count = tokens.ids_size();
  result_.tokens[input] = count;
  Grow(static_cast<int64_t>(tokens.SpaceUsedLong()), count * kTokenBytes);
  result_.texts[input] = std::move(tokens);
}

void TextCollector::TakeRows(const TextPart& part, ResponseTensor& tensor) {
  const int64_t width = tensor.dim(1);
  const Elements<float> rows(tensor);
  std::vector<float> row(static_cast<size_t>(width));
  for (size_t i = 0; i < part.size(); ++i) {
    rows.CopyTo(static_cast<int64_t>(i) * width, width, row.data());
    const absl::Span<float> to(
        result_.numbers.data() + part[i] * static_cast<size_t>(result_.width),
        static_cast<size_t>(result_.width));
    if (to.size() < row.size()) {
      Shorten(row, to);
    } else {
      std::copy(row.begin(), row.end(), to.begin());
    }
    ApplyScores(function_, to);
  }
}

void TextCollector::TakeTokenRows(const TextPart& part, ResponseTensor& tensor) {
  const auto width = static_cast<size_t>(result_.width);
  const Elements<float> rows(tensor);
  int64_t first = 0;
  for (const size_t input : part) {
    const auto count = static_cast<int64_t>(width) * result_.tokens[input];
    std::vector<float>& own = token_rows_[input];
    own.resize(static_cast<size_t>(count));
    rows.CopyTo(first, count, own.data());
    first += count;
    for (size_t row = 0; row < own.size(); row += width) {
      ApplyScores(function_, absl::Span<float>(own).subspan(row, width));
    }
    if (task_.wish == TextWish::kTokenVectors && is_multi_vector_) DropEmptyRows(input);
    // Twice, because they are concatenated at the end.
    Grow(2 * count * static_cast<int64_t>(sizeof(float)), count * kNumberBytes);
  }
}

void TextCollector::DropEmptyRows(size_t input) {
  const auto width = static_cast<size_t>(result_.width);
  std::vector<float>& own = token_rows_[input];
  size_t kept = 0;
  for (size_t row = 0; row < own.size(); row += width) {
    const auto begin = own.begin() + static_cast<std::ptrdiff_t>(row);
    const auto end = begin + static_cast<std::ptrdiff_t>(width);
    if (std::all_of(begin, end, [](float number) { return number == 0; })) continue;
    std::copy(begin, end, own.begin() + static_cast<std::ptrdiff_t>(kept));
    kept += width;
  }
  own.resize(kept);
  result_.tokens[input] = static_cast<int64_t>(kept / width);
}

void TextCollector::TakeQuery(Response response) {
  ResponseTensor& tensor = *response.Find(OutputKind::kTokenVectors);
  query_.shape = {tensor.dim(0), tensor.dim(1)};
  result_.query_tokens = tensor.dim(0);
  query_.data = Payload(MessageSlices{tensor.TakeData()});
  Grow(query_.data.size(), 0);
}

void TextCollector::TakeScores(const TextPart& part, ResponseTensor& tensor) {
  const Elements<float> scores(tensor);
  for (size_t i = 0; i < part.size(); ++i) {
    result_.numbers[part[i]] = scores.at(static_cast<int64_t>(i));
  }
}

void TextCollector::TakeSparse(const TextPart& part, SparseResponse& sparse) {
  const std::vector<int64_t> counts = sparse.counts();
  const Elements<int32_t> words(sparse.indices());
  const Elements<float> weights(sparse.weights());
  int64_t at = 0;
  for (size_t i = 0; i < part.size(); ++i) {
    std::vector<SparseEntry>& own = result_.sparse[part[i]];
    own.reserve(static_cast<size_t>(counts[i]));
    for (const int64_t end = at + counts[i]; at < end; ++at) {
      own.push_back({words.at(at), weights.at(at)});
    }
    // {"index":12345,"value":…},
    Grow(counts[i] * static_cast<int64_t>(sizeof(SparseEntry)), counts[i] * 3 * kNumberBytes);
  }
}

TextResult TextCollector::Finish() {
  for (std::vector<float>& rows : token_rows_) {
    result_.numbers.insert(result_.numbers.end(), rows.begin(), rows.end());
    rows = {};
  }
  return std::move(result_);
}

}  // namespace attendant::server
