#include "client/cli/answer_output.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/cli/print_tensor.h"
#include "client/cli/to_json.h"
#include "client/files/tensor_file.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {
namespace {

void PrintExecution(std::ostream& out, const Execution& execution) {
  out << absl::StrFormat(
      "%d tokens in a batch of %d (%d requests), %s: queue %.3f ms, copy %.3f ms, compute %.3f "
      "ms\n",
      execution.tokens, execution.batch_tokens, execution.batch_requests,
      execution.compute_type.empty() ? "unknown type" : execution.compute_type,
      absl::ToDoubleMilliseconds(execution.queue), absl::ToDoubleMilliseconds(execution.copy),
      absl::ToDoubleMilliseconds(execution.compute));
  if (execution.truncated_tokens > 0) {
    out << absl::StrFormat("%d tokens were truncated\n", execution.truncated_tokens);
  }
  if (execution.cached_sequences > 0) {
    out << absl::StrFormat("cached sequences: %d\n", execution.cached_sequences);
  }
}

}  // namespace

void Add(const Execution& part, Execution& whole) {
  whole.queue += part.queue;
  whole.copy += part.copy;
  whole.compute += part.compute;
  whole.tokenize += part.tokenize;
  whole.tokens += part.tokens;
  whole.truncated_tokens += part.truncated_tokens;
  whole.cached_sequences += part.cached_sequences;
  whole.batch_tokens = std::max(whole.batch_tokens, part.batch_tokens);
  whole.batch_requests = std::max(whole.batch_requests, part.batch_requests);
}

Flag AnswerOutput::OutputFlag() {
  return {"--output", "FILE", "Write the tensors to FILE.npy or FILE.safetensors instead of stdout",
          TextKind(path_)};
}

absl::Status AnswerOutput::Check(size_t tensors) const {
  return path_.empty() ? absl::OkStatus() : CheckWritable(path_, tensors);
}

ExitCode AnswerOutput::Emit(Session& session, const std::vector<NamedTensor>& tensors,
                            const Execution& execution) const {
  if (!path_.empty()) {
    const absl::Status status = WriteTensors(path_, tensors);
    if (!status.ok()) return ReportBadUsage(session, status);
  }
  if (session.json) {
    PrintJson(session, Document(tensors, execution));
    return kSucceeded;
  }
  for (const NamedTensor& named : tensors) {
    if (path_.empty()) {
      PrintTensor(session.out, named.name, named.tensor);
    } else {
      session.out << named.name << " " << Name(named.tensor.dtype) << " "
                  << ShapeToString(named.tensor.shape) << " -> " << path_ << "\n";
    }
  }
  PrintExecution(session.out, execution);
  return kSucceeded;
}

JsonValue AnswerOutput::Document(const std::vector<NamedTensor>& tensors,
                                 const Execution& execution) const {
  std::vector<std::pair<std::string, JsonValue>> members;
  for (const NamedTensor& named : tensors) {
    members.emplace_back(named.name, path_.empty() ? ToJson(named.tensor)
                                                   : JsonValue{{"dtype", Name(named.tensor.dtype)},
                                                               {"shape", named.tensor.shape},
                                                               {"file", path_}});
  }
  members.emplace_back("execution", ToJson(execution));
  return JsonValue::Object(members);
}

}  // namespace attendant::client
