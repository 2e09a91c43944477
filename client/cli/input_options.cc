#include "client/cli/input_options.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/inline_values.h"
#include "client/cli/print_tensor.h"
#include "client/cli/read_tensors.h"
#include "client/cli/shared_flags.h"
#include "client/files/tensor_file.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {
namespace {

constexpr int64_t kMaxMessageBytes = int64_t{2} << 30;

// Whether ReadTensor takes it for a file.
bool IsTensorFile(const std::string& text) {
  return absl::StrContains(text, ".npy") || absl::StrContains(text, ".safetensors");
}

}  // namespace

ExitCode ReadInput(Session& session, const std::string& model, const InputOptions& options,
                   RequestInput& input) {
  int64_t width = 0;
  if (options.NeedsWidth()) {
    const absl::StatusOr<ModelInfo> info = session.Connect().GetModel(model, session.call);
    if (!info.ok()) return ReportServerError(session, info.status());
    width = options.WidthOf(*info);
  }
  absl::StatusOr<RequestInput> read = options.Read(width);
  if (!read.ok()) return ReportBadUsage(session, read.status());
  input = *std::move(read);
  if (!session.json) options.Show(session.out, input);
  return kSucceeded;
}

void MoveInput(RequestInput input, EncodeRequest& request) {
  request.layout = input.layout;
  request.hidden_states = std::move(input.hidden_states);
  request.features = std::move(input.features);
  request.token_ids = std::move(input.token_ids);
  request.token_type_ids = std::move(input.token_type_ids);
  request.position_ids = std::move(input.position_ids);
  request.attention_mask = std::move(input.attention_mask);
  request.attention_bias = std::move(input.attention_bias);
  request.lengths = std::move(input.lengths);
  request.texts = std::move(input.texts);
}

Flags InputOptions::TensorFlags() {
  return {
      {"--input", "FILE",
       "Hidden states [B, S, E], or [T, E] with --lengths, from FILE.npy or "
       "FILE.safetensors[:NAME]; float64 is read as float32",
       TextKind(input_)},
      {"--values", "ROWS", "Hidden states, one row of numbers per token: \"1,0,1,0;0,2,0,2\"",
       TextKind(values_), "", "--input"},
      {"--generate", "SHAPE",
       "Random (standard normal) hidden states: BxSxE, or BxS with the model's width; T with "
       "--lengths",
       TextKind(generate_), "", "--input --values"},
      {"--seed", "SEED", "Seed of --generate", IntegerKind(seed_)},
      {"--wire-dtype", "", "Send the hidden states in this type",
       FloatTypeKind(wire_dtype_, "unchanged")},
      {"--mask", "FILE|ROWS",
       "Attention mask [B, S], non-zero keeps a token: a file, or rows such as "
       "\"1,1,0;1,1,1\"",
       TextKind(mask_)},
      {"--lengths", "N,...", "Number of kept tokens of each sequence, such as 3,2",
       ListKind(lengths_)},
      {"--bias", "FILE", "Additive attention bias, broadcastable to [B, H, S, S]", TextKind(bias_)},
      {"--show-input", "", "Also print the input; ignored with --json", SwitchKind(show_)},
  };
}

Flags InputOptions::TokenFlags() {
  return {
      {"--token-ids", "FILE|ROWS",
       "Token ids [B, S] as the input, or [T] with --lengths: a file, or one row per sequence: "
       "\"101,2023,102;101,102\"",
       TextKind(token_ids_)},
      {"--token-type-ids", "FILE|ROWS", "Token types of --token-ids", TextKind(token_type_ids_)},
      {"--position-ids", "FILE|ROWS", "Positions of --token-ids", TextKind(position_ids_)},
  };
}

Flag InputOptions::TextFlag() {
  return {
      "--text",
      "TEXT",
      "Input text, which the server tokenizes",
      TextsKind(texts_),
      "",
      "--input --values --generate --token-ids --token-type-ids --position-ids --mask --lengths "
      "--bias --features"};
}

Flag InputOptions::FeaturesFlag() {
  return {"--features", "",
          "Treat the input as features: rows of patches or frames, to which the model adds prefix "
          "tokens and positions",
          SwitchKind(features_)};
}

Flag InputOptions::LayoutFlag() { return SequenceFirstFlag(layout_); }

bool InputOptions::NeedsWidth() const {
  return !generate_.empty() && std::count(generate_.begin(), generate_.end(), 'x') < 2;
}

int64_t InputOptions::WidthOf(const ModelInfo& model) const {
  return features_ && model.has_front() ? model.front().feature_width()
                                        : model.layer().hidden_size();
}

absl::StatusOr<RequestInput> InputOptions::Read(int64_t width) const {
  RequestInput input;
  input.layout = layout_;
  input.lengths = lengths_;
  input.texts = texts_;
  absl::Status status = ReadHiddenStates(width, input);
  status.Update(ReadTokens(input));
  status.Update(ReadIntegers("--mask", mask_, input.attention_mask, nullptr));
  if (!status.ok()) return status;
  const int inputs = input.hidden_states.has_value() + input.token_ids.has_value();
  if (inputs != (texts_.empty() ? 1 : 0)) {
    return absl::InvalidArgumentError(
        inputs > 1 ? "--token-ids: cannot be combined with hidden states"
                   : "expected one of --input, --values, --generate or --token-ids; got none");
  }
  if (!bias_.empty()) {
    absl::StatusOr<Tensor> bias = ReadTensor(bias_);
    if (!bias.ok()) return Named("--bias", bias.status());
    input.attention_bias = *std::move(bias);
  }
  if (input.attention_mask) AddBatchDimension(2, Layout::kBatchFirst, *input.attention_mask);
  if (features_ && !input.hidden_states) {
    return absl::InvalidArgumentError("--features: requires --input, --values or --generate");
  }
  const bool packed = !input.lengths.empty();
  if (input.hidden_states && !packed) AddBatchDimension(3, layout_, *input.hidden_states);
  for (auto* ids : {&input.token_ids, &input.token_type_ids, &input.position_ids}) {
    if (*ids && !packed) AddBatchDimension(2, layout_, **ids);
  }
  if (features_) input.features = std::exchange(input.hidden_states, std::nullopt);
  return input;
}

void InputOptions::Show(std::ostream& out, const RequestInput& input) const {
  if (!show_) return;
  const std::pair<const char*, const std::optional<Tensor>&> tensors[] = {
      {"hidden_states", input.hidden_states},  {"features", input.features},
      {"token_ids", input.token_ids},          {"token_type_ids", input.token_type_ids},
      {"position_ids", input.position_ids},    {"attention_mask", input.attention_mask},
      {"attention_bias", input.attention_bias}};
  for (const auto& [name, tensor] : tensors) {
    if (tensor) PrintTensor(out, name, *tensor);
  }
}

absl::Status InputOptions::ReadHiddenStates(int64_t width, RequestInput& input) const {
  absl::StatusOr<Tensor> tensor;
  if (!input_.empty()) {
    tensor = ReadTensor(input_);
    if (!tensor.ok()) return Named("--input", tensor.status());
  } else if (!values_.empty()) {
    tensor = ParseFloatRows(values_);
    if (!tensor.ok()) return Named("--values", tensor.status());
  } else if (!generate_.empty()) {
    tensor = Generate(width);
    if (!tensor.ok()) return Named("--generate", tensor.status());
  } else {
    return absl::OkStatus();
  }
  if (wire_dtype_) {
    tensor = ConvertFloat(*tensor, *wire_dtype_);
    if (!tensor.ok()) return Named("--wire-dtype", tensor.status());
  }
  input.hidden_states = *std::move(tensor);
  return absl::OkStatus();
}

absl::Status InputOptions::ReadTokens(RequestInput& input) const {
  if (!token_ids_.empty() && !LooksInline(token_ids_) && !IsTensorFile(token_ids_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--token-ids: expected FILE.npy, FILE.safetensors or ids such as 101,7592,102; got \"",
        token_ids_, "\"; use `encode --text` for texts, or `tokenize` to get their ids"));
  }
  absl::Status status = ReadIntegers("--token-ids", token_ids_, input.token_ids, &input.lengths);
  status.Update(
      ReadIntegers("--token-type-ids", token_type_ids_, input.token_type_ids, &input.lengths));
  status.Update(ReadIntegers("--position-ids", position_ids_, input.position_ids, &input.lengths));
  return status;
}

absl::StatusOr<Tensor> InputOptions::Generate(int64_t width) const {
  absl::StatusOr<std::vector<int64_t>> shape = ParseDimensions(generate_);
  if (!shape.ok()) return shape.status();
  if (NeedsWidth()) shape->push_back(width);
  const std::optional<int64_t> count = ElementCount(*shape);
  if (!count || *count > kMaxMessageBytes / ByteWidth(DataType::kFloat32)) {
    return absl::InvalidArgumentError(
        absl::StrCat(ShapeToString(*shape), " exceeds the 2 GiB of one message"));
  }
  std::mt19937_64 random(seed_);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(*count));
  for (float& value : values) value = normal(random);
  return FloatTensor(*std::move(shape), values);
}

}  // namespace attendant::client
