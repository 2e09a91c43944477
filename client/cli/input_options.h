// InputOptions, the flags for the input tensors of a request.
#pragma once

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

// The tensors given by the flags, as fields of a request.
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
  std::vector<std::string> texts;
};

// The flags of the input, the files that they name and the values that they generate.
class InputOptions {
 public:
  // Return flags that write into this object. TensorFlags: hidden states, masks, lengths and
  // biases, for every command with an input. TokenFlags: token ids as the input. FeaturesFlag:
  // features as the input. TextFlag: texts. LayoutFlag: tensors in SEQUENCE_FIRST order; without it
  // they are batch first.
  Flags TensorFlags();
  Flags TokenFlags();
  Flag TextFlag();
  Flag FeaturesFlag();
  Flag LayoutFlag();

  // Returns the number of texts that were given.
  size_t texts() const { return texts_.size(); }

  // Return whether --generate leaves the width to the model, and the width that it then has.
  bool NeedsWidth() const;
  int64_t WidthOf(const ModelInfo& model) const;

  // Reads the files and generates the values of --generate, `width` wide if NeedsWidth. A lone
  // sequence gets its batch dimension: [S, E] without lengths becomes [1, S, E], or [S, 1, E] if
  // sequences come first. INVALID_ARGUMENT and NOT_FOUND name the flag or the file.
  absl::StatusOr<RequestInput> Read(int64_t width) const;

  // Prints the tensors of the input if --show-input was given.
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
  std::optional<DataType> wire_dtype_;
  std::string mask_;
  std::vector<int64_t> lengths_;
  std::string bias_;
  std::vector<std::string> texts_;
  std::string token_ids_;
  std::string token_type_ids_;
  std::string position_ids_;
  bool show_ = false;
};

// Reads the input of a command into `input`: asks the server for the width of the model if
// necessary, reads the tensors and shows them. Reports errors and returns their exit code.
ExitCode ReadInput(Session& session, const std::string& model, const InputOptions& options,
                   RequestInput& input);

// Moves the tensors and texts of the input into the fields of the same names.
void MoveInput(RequestInput input, EncodeRequest& request);

}  // namespace attendant::client
