// Output of an answer's tensors: into a file, or printed.
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"
#include "client/files/safetensors.h"
#include "client/messages.h"

namespace attendant::client {

class AnswerOutput {
 public:
  void AddTo(CLI::App& app);

  // INVALID_ARGUMENT if the file cannot hold this number of tensors: to be asked before the request
  // is sent.
  absl::Status Check(size_t tensors) const;

  // Writes the tensors to the file, if one was named, and prints what is left to say. The names are
  // those of the JSON document and of the tensors in the file.
  ExitCode Emit(Session& session, const std::vector<NamedTensor>& tensors,
                const Execution& execution) const;

 private:
  Json Document(const std::vector<NamedTensor>& tensors, const Execution& execution) const;

  std::string path_;
};

}  // namespace attendant::client
