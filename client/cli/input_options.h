// The flags that say where a request's tensors come from.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/messages.h"
#include "client/tensor.h"

namespace attendant::client {

struct RequestInput {
  Layout layout = Layout::kBatchFirst;
  std::optional<Tensor> hidden_states;
  std::optional<Tensor> features;
  std::optional<Tensor> token_ids;
  std::optional<Tensor> token_type_ids;
  std::optional<Tensor> position_ids;
  std::optional<Tensor> attention_mask;
  std::optional<Tensor> attention_bias;
  std::vector<int64_t> lengths;
};

class InputOptions {
 public:
  // Hidden states and what goes with them.
  void AddTo(CLI::App& app);
  // Beside those: token ids as the input.
  void AddTokensTo(CLI::App& app);
  // Beside those: that they are features.
  void AddFeaturesTo(CLI::App& app);
  // Beside those: sequences first. Without it the input is batch first.
  void AddLayoutTo(CLI::App& app);

  // Whether --generate leaves the width to the model, and what it then is.
  bool NeedsWidth() const;
  int64_t WidthOf(const ModelInfo& model) const;

  // Reads the files and generates what is to be generated, `width` wide if need be. A lone
  // sequence gets its batch dimension: [S, E] without lengths becomes [1, S, E], or [S, 1, E].
  // INVALID_ARGUMENT and NOT_FOUND name the flag or the file.
  absl::StatusOr<RequestInput> Read(int64_t width) const;

  // Prints the input's tensors, if --show-input asks for that.
  void Show(std::ostream& out, const RequestInput& input) const;

 private:
  absl::Status ReadHiddenStates(int64_t width, RequestInput& input) const;
  absl::Status ReadTokens(RequestInput& input) const;
  absl::StatusOr<Tensor> Generate(int64_t width) const;

  Layout layout_ = Layout::kBatchFirst;
  bool features_ = false;
  std::string input_;
  std::string values_;
  std::string generate_;
  uint64_t seed_ = 1;
  std::string wire_dtype_;
  std::string mask_;
  std::vector<int64_t> lengths_;
  std::string bias_;
  std::string token_ids_;
  std::string token_type_ids_;
  std::string position_ids_;
  bool show_ = false;
};

// What a command that sends a request starts with: asks the server how wide the model is if need
// be, reads the input and shows it. Reports what goes wrong.
ExitCode ReadInput(Session& session, const std::string& model, const InputOptions& options,
                   RequestInput& input);

// Everything of the input into the fields of its name.
void MoveInput(RequestInput input, EncodeRequest& request);

// The flag that says so of tensors.
void AddSequenceFirst(CLI::App& app, Layout& layout);

// A flag for a float type by its name; empty if not given.
CLI::Option* AddFloatType(CLI::App& app, const std::string& flag, std::string& name,
                          const std::string& help);
std::optional<DataType> FloatType(const std::string& name);

}  // namespace attendant::client
