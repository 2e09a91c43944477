// AnswerOutput, which writes the tensors of a response to a file or prints them.
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"
#include "client/files/safetensors.h"
#include "client/messages.h"

namespace attendant::client {

// Adds the execution of one of several requests to the total.
void Add(const Execution& part, Execution& whole);

// The flag --output and its implementation.
class AnswerOutput {
 public:
  // Returns the flag, which writes into this object.
  Flag OutputFlag();

  // Returns INVALID_ARGUMENT if the file cannot hold this number of tensors. Call it before sending
  // the request, so that no response is lost.
  absl::Status Check(size_t tensors) const;

  // Writes the tensors to the file, if one was named, and prints the rest: the tensors or their
  // shapes, and the execution. The names are those in the JSON document and in the file.
  ExitCode Emit(Session& session, const std::vector<NamedTensor>& tensors,
                const Execution& execution) const;

 private:
  JsonValue Document(const std::vector<NamedTensor>& tensors, const Execution& execution) const;

  std::string path_;
};

}  // namespace attendant::client
