#include "server/text_calls/text_collector.h"

#include <algorithm>
#include <cmath>
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
  if (task.wish != TextWish::kScores || task.interacts) return ScoreFunction::kPlain;
  return task.scores.value_or(task.query ? tokenization.rank_scores : tokenization.class_scores);
}

// Of a vector in the result: the first `dimensions` numbers if the task says so.
int64_t WidthOf(const TextTask& task, const ServedModel& model) {
  const ModelDescription& description = model.encoder->description();
  const int64_t hidden_size = description.layer.hidden_size;
  const bool is_tokens = task.wish == TextWish::kTokenVectors;
  if (task.wish == TextWish::kVectors) return task.dimensions.value_or(TextVectorWidth(model));
  if (task.wish == TextWish::kScores) {
    return task.interacts ? 1 : description.classifier->width(hidden_size);
  }
  if (task.wish == TextWish::kEntities || (is_tokens && IsMultiVector(model))) {
    return description.token_head->width(hidden_size);
  }
  return is_tokens ? hidden_size : 0;
}

std::vector<std::string> LabelsOf(const TextTask& task, const ServedModel& model, int64_t width) {
  if (task.wish != TextWish::kScores && task.wish != TextWish::kEntities) return {};
  std::vector<std::string> labels = model.tokenization->labels;
  for (auto i = static_cast<int64_t>(labels.size()); i < width; ++i) {
    labels.push_back(absl::StrCat("LABEL_", i));
  }
  return labels;
}

// Returns elements of 4 bytes, which the tensor owns.
template <typename T>
absl::Span<const T> ElementsOf(const ResponseTensor& tensor, int64_t first, int64_t count) {
  static_assert(sizeof(T) == 4);
  return {reinterpret_cast<const T*>(tensor.BytesAt(first, count).data()),
          static_cast<size_t>(count)};
}

void ScaleToLengthOne(absl::Span<float> vector) {
  double sum = 0;
  for (const float number : vector) sum += double{number} * number;
  const double length = std::max<double>(std::sqrt(sum), std::numeric_limits<float>::min());
  for (float& number : vector) number = static_cast<float>(number / length);
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
  result_.unknown_id = model.tokenizer->unknown_id;
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
  const TextWish wish = task_.wish;
  result_.tokens.resize(inputs);
  if (wish == TextWish::kVectors || wish == TextWish::kScores) {
    result_.numbers.resize(inputs * static_cast<size_t>(result_.width));
  }
  if (wish == TextWish::kTokenVectors || wish == TextWish::kEntities) token_rows_.resize(inputs);
  if (wish == TextWish::kSparse) result_.sparse.resize(inputs);
  if (wish == TextWish::kEntities || wish == TextWish::kTokens) result_.texts.resize(inputs);
}

void TextCollector::Take(const TextPart& part, Response response) {
  for (size_t i = 0; i < part.size(); ++i) {
    const std::optional<std::vector<int32_t>>& ids = task_.inputs[part[i]].ids;
    const size_t tokens = ids ? ids->size() : response.texts->texts[i].ids.size();
    result_.tokens[part[i]] = static_cast<int64_t>(tokens);
    if (task_.wish == TextWish::kEntities) TakeTokens(part[i], response.texts->Describe(i));
  }
  if (task_.wish == TextWish::kSparse) return TakeSparse(part, *response.sparse);
  if (task_.wish == TextWish::kTokenVectors || task_.wish == TextWish::kEntities) {
    const bool takes_states = task_.wish == TextWish::kTokenVectors && !is_multi_vector_;
    return TakeTokenRows(
        part, *response.Find(takes_states ? OutputKind::kHiddenStates : OutputKind::kTokenVectors));
  }
  TakeRows(part, *response.Find(task_.interacts ? OutputKind::kScores : OutputKind::kPooled));
}

void TextCollector::TakeTokens(size_t input, v1::TextTokens tokens) {
  const int64_t count = tokens.ids_size();
  result_.tokens[input] = count;
  Grow(static_cast<int64_t>(tokens.SpaceUsedLong()), count * kTokenBytes);
  result_.texts[input] = std::move(tokens);
}

void TextCollector::TakeRows(const TextPart& part, const ResponseTensor& tensor) {
  const int64_t width = tensor.elements() / static_cast<int64_t>(part.size());
  for (size_t i = 0; i < part.size(); ++i) {
    const auto row = ElementsOf<float>(tensor, static_cast<int64_t>(i) * width, width);
    const absl::Span<float> to(
        result_.numbers.data() + part[i] * static_cast<size_t>(result_.width),
        static_cast<size_t>(result_.width));
    std::copy_n(row.begin(), to.size(), to.begin());
    if (to.size() < row.size() && task_.normalize) ScaleToLengthOne(to);
    ApplyScores(function_, to);
  }
}

void TextCollector::TakeTokenRows(const TextPart& part, const ResponseTensor& tensor) {
  const auto width = static_cast<size_t>(result_.width);
  int64_t first = 0;
  for (const size_t input : part) {
    const auto count = static_cast<int64_t>(width) * result_.tokens[input];
    std::vector<float>& own = token_rows_[input];
    const auto rows = ElementsOf<float>(tensor, first, count);
    own.assign(rows.begin(), rows.end());
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

void TextCollector::TakeSparse(const TextPart& part, SparseResponse& sparse) {
  const std::vector<int64_t> counts = sparse.counts();
  int64_t first = 0;
  for (size_t i = 0; i < part.size(); ++i) {
    const auto words = ElementsOf<int32_t>(sparse.indices(), first, counts[i]);
    const auto weights = ElementsOf<float>(sparse.weights(), first, counts[i]);
    std::vector<SparseEntry>& own = result_.sparse[part[i]];
    own.reserve(words.size());
    for (size_t j = 0; j < words.size(); ++j) own.push_back({words[j], weights[j]});
    first += counts[i];
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
