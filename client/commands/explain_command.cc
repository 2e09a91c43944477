#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/input_options.h"
#include "client/cli/shared_flags.h"
#include "client/commands/commands.h"
#include "client/inspect/inspection.h"

namespace attendant::client {
namespace {

constexpr int kMostDigits = 6;

// The server's answers about one request: probabilities [B, H, S, S] and values [B, S, H D].
struct Attention {
  int64_t sequences = 0;
  int64_t heads = 0;
  int64_t length = 0;
  int64_t value_width = 0;
  std::vector<float> probabilities;
  std::vector<float> values;
  std::vector<int64_t> head_numbers;  // in the checkpoint
};

// The steps of one query of one head.
struct Step {
  std::vector<double> probabilities;          // [keys]
  std::vector<std::vector<double>> weighted;  // [keys, D]
  std::vector<double> output;                 // [D]
};

absl::Status Unexpected(const Tensor& tensor) {
  return absl::InternalError(
      absl::StrCat("the server's response has an unexpected shape: ", ShapeToString(tensor.shape)));
}

absl::Status TakeProbabilities(const AttendResult& result, Attention& attention) {
  if (!result.attention_probabilities || result.attention_probabilities->shape.size() != 4) {
    return Unexpected(result.output);
  }
  const Tensor& tensor = *result.attention_probabilities;
  attention.sequences = tensor.shape[0];
  attention.heads = tensor.shape[1];
  attention.length = tensor.shape[2];
  absl::StatusOr<std::vector<float>> floats = ToFloats(tensor);
  if (floats.ok()) attention.probabilities = std::move(*floats);
  return floats.status();
}

// Computes the values: the context of tokens that attend only to themselves.
absl::Status TakeValues(const AttendResult& result, Attention& attention) {
  const std::vector<int64_t>& shape = result.output.shape;
  if (shape.size() != 3 || shape[0] != attention.sequences || shape[1] != attention.length ||
      shape[2] % attention.heads != 0) {
    return Unexpected(result.output);
  }
  attention.value_width = shape[2] / attention.heads;
  absl::StatusOr<std::vector<float>> floats = ToFloats(result.output);
  if (floats.ok()) attention.values = std::move(*floats);
  return floats.status();
}

Tensor OnlyThemselves(int64_t length) {
  std::vector<float> bias(length * length, -std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < length; ++i) bias[i * length + i] = 0;
  return FloatTensor({1, 1, length, length}, bias);
}

absl::StatusOr<Attention> Ask(const Session& session, AttendRequest request) {
  Attention attention;
  const std::string name = request.model;
  const uint32_t layer = request.layer;
  const Client client = session.Connect();
  request.return_attention_probabilities = true;
  const absl::StatusOr<AttendResult> attended = client.Attend(request, session.call);
  if (!attended.ok()) return attended.status();
  absl::Status status = TakeProbabilities(*attended, attention);
  if (!status.ok()) return status;
  request.return_attention_probabilities = false;
  request.attention_bias = OnlyThemselves(attention.length);
  const absl::StatusOr<AttendResult> alone = client.Attend(std::move(request), session.call);
  if (!alone.ok()) return alone.status();
  status = TakeValues(*alone, attention);
  if (!status.ok()) return status;
  const absl::StatusOr<ModelInfo> model = client.GetModel(name, session.call);
  if (!model.ok()) return model.status();
  for (int64_t h = 0; h < attention.heads; ++h) {
    attention.head_numbers.push_back(HeadNumber(*model, layer, h));
  }
  return attention;
}

std::vector<double> ValueOf(const Attention& attention, int64_t b, int64_t h, int64_t token) {
  const int64_t width = attention.value_width;
  const int64_t first = ((b * attention.length + token) * attention.heads + h) * width;
  return {attention.values.begin() + first, attention.values.begin() + first + width};
}

// Rounds the weights of a query to decimals with an unchanged sum, as one does on paper: those with
// the largest remainders are rounded up.
std::vector<double> Round(std::vector<double> probabilities, int digits) {
  if (digits < 0) return probabilities;
  const double scale = std::pow(10, digits);
  double left =
      std::round(std::accumulate(probabilities.begin(), probabilities.end(), 0.0) * scale);
  std::vector<std::pair<double, size_t>> remainders;  // negated, so that sorting puts the largest
                                                      // first
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double units = probabilities[i] * scale, whole = std::floor(units);
    remainders.emplace_back(whole - units, i);
    probabilities[i] = whole / scale;
    left -= whole;
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; i < remainders.size() && left > 0.5; ++i, --left) {
    double& probability = probabilities[remainders[i].second];
    probability = std::round(probability * scale + 1) / scale;
  }
  return probabilities;
}

Step Explain(const Attention& attention, int64_t matrix, int64_t query, int digits) {
  const int64_t row = (matrix * attention.length + query) * attention.length;
  const auto first = attention.probabilities.begin() + row;
  Step step;
  step.probabilities = Round({first, first + attention.length}, digits);
  step.output.resize(attention.value_width);
  for (int64_t key = 0; key < attention.length; ++key) {
    std::vector<double> value =
        ValueOf(attention, matrix / attention.heads, matrix % attention.heads, key);
    for (size_t i = 0; i < value.size(); ++i) {
      value[i] *= step.probabilities[key];
      step.output[i] += value[i];
    }
    step.weighted.push_back(std::move(value));
  }
  return step;
}

std::string Text(const std::vector<double>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

void Print(std::ostream& out, const Attention& attention, int64_t matrix, int digits) {
  const int64_t b = matrix / attention.heads, h = matrix % attention.heads;
  out << absl::StrCat("sequence ", b, ", head ", attention.head_numbers[h], "\n");
  for (int64_t query = 0; query < attention.length; ++query) {
    const Step step = Explain(attention, matrix, query, digits);
    out << absl::StrCat("  query ", query, ": probabilities ", Text(step.probabilities), "\n");
    for (int64_t key = 0; key < attention.length; ++key) {
      out << absl::StrCat("    ", step.probabilities[key], " x value ", key, " ",
                          Text(ValueOf(attention, b, h, key)), " = ", Text(step.weighted[key]),
                          "\n");
    }
    out << absl::StrCat("    sum: ", Text(step.output), "\n");
  }
}

JsonValue AttentionJson(const Attention& attention, int64_t matrix, int digits) {
  const int64_t b = matrix / attention.heads, h = matrix % attention.heads;
  std::vector<JsonValue> values, queries;
  for (int64_t token = 0; token < attention.length; ++token) {
    values.push_back(ValueOf(attention, b, h, token));
    const Step step = Explain(attention, matrix, token, digits);
    queries.push_back({{"probabilities", step.probabilities},
                       {"weighted_values", step.weighted},
                       {"output", step.output}});
  }
  return {{"sequence", b},
          {"head", attention.head_numbers[h]},
          {"values", values},
          {"queries", queries}};
}

class ExplainCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  std::string model_;
  uint32_t layer_ = 0;
  int digits_ = -1;  // decimals of the rounded probabilities; -1: not rounded
  InputOptions input_;
};

CommandTable ExplainCommand::Table() {
  CommandTable table = {"Look inside", "explain",
                        "Show each step from probabilities to the context layer",
                        "Prints the probabilities of each query, each value times its probability, "
                        "and their sum. For few tokens.",
                        "attendant-client explain --values \"1,0,1,0;0,2,0,2;1,1,1,1\" --round 1"};
  table.Add("Model", {ModelFlag(model_), LayerFlag(layer_)});
  table.Add("Input", input_.TensorFlags());
  FlagKind digits = IntegerKind(digits_, 0, kMostDigits);
  digits.initial = "no rounding";
  table.Add("Output", {{"--round", "DECIMALS",
                        "First round probabilities to this many decimals, so that they still sum "
                        "to 1 for each query",
                        std::move(digits)}});
  return table;
}

ExitCode ExplainCommand::Run(Session& session) {
  RequestInput input;
  if (const ExitCode read = ReadInput(session, model_, input_, input); read != kSucceeded) {
    return read;
  }
  AttendRequest request;
  request.model = model_;
  request.layer = layer_;
  request.hidden_states = *std::move(input.hidden_states);
  request.attention_mask = std::move(input.attention_mask);
  request.output_dtype = DataType::kFloat32;
  if (request.hidden_states.shape.size() != 3) {
    return ReportBadUsage(
        session, absl::InvalidArgumentError(
                     absl::StrCat("explain: expected hidden states [B, S, E], not packed; got ",
                                  ShapeToString(request.hidden_states.shape))));
  }
  if (input.attention_bias) {
    return ReportBadUsage(session,
                          absl::InvalidArgumentError("explain: cannot be combined with --bias"));
  }
  request.lengths = std::move(input.lengths);
  const absl::StatusOr<Attention> attention = Ask(session, std::move(request));
  if (!attention.ok()) return ReportServerError(session, attention.status());
  std::vector<JsonValue> explained;
  for (int64_t matrix = 0; matrix < attention->sequences * attention->heads; ++matrix) {
    if (session.json) {
      explained.push_back(AttentionJson(*attention, matrix, digits_));
    } else {
      Print(session.out, *attention, matrix, digits_);
    }
  }
  if (session.json) PrintJson(session, {{"heads", explained}});
  return kSucceeded;
}

}  // namespace

std::unique_ptr<Command> MakeExplainCommand() { return std::make_unique<ExplainCommand>(); }

}  // namespace attendant::client
