#include "client/commands/load/request_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/read_tensors.h"
#include "client/cli/shared_flags.h"
#include "client/load_requests/input_files.h"

namespace attendant::client {
namespace {

constexpr char kAttend[] = "attend";
constexpr char kEncode[] = "encode";

}  // namespace

void RequestFlags::AddTo(CommandTable& load_test) {
  load_test.Add(
      "Requests",
      {{"--method", "", "Method to call",
        ChoiceKind<Method>(workload_.method,
                           {{kAttend, Method::kAttend}, {kEncode, Method::kEncode}})},
       {"--stream", "", "Pipeline encode requests over one EncodeStream per connection",
        SwitchKind(stream_)},
       ModelFlag(workload_.model),
       {"--protocol", "",
        "Call the server's own service, or ModelInfer of the Open Inference Protocol, padded and "
        "with raw contents",
        ChoiceKind<Protocol>(workload_.protocol,
                             {{"native", Protocol::kNative}, {"oip", Protocol::kOip}})}});
  load_test.Add("Requests", SequenceFlags());
  load_test.Add(
      "Requests",
      {{"--batch", "COUNT", "Sequences in a request",
        IntegerKind<int64_t>(workload_.batch, 1, 65536)},
       {"--padded", "", "Send [B, S, E] with padding instead of packed [T, E]",
        SwitchKind(workload_.padded)},
       {"--token-ids", "", "Send token ids instead of hidden states",
        SwitchKind(workload_.token_ids)},
       {"--pooled", "", "Request pooled vectors instead of hidden states",
        SwitchKind(workload_.pooled)},
       {"--wire-dtype", "", "Type of hidden states on the wire", FloatTypeKind(workload_.dtype)},
       {"--seed", "SEED", "Seed of lengths, values and arrivals", IntegerKind(workload_.seed)}});
}

Flags RequestFlags::SequenceFlags() {
  return {
      {"--lengths", "LENGTHS",
       "Tokens of each sequence: N, MIN..MAX (uniform), or lognormal:MEDIAN:SIGMA[:MAX], where MAX "
       "is 512 unless it is given",
       TextKind(length_text_)},
      {"--lengths-file", "FILE",
       "Take the lengths of sequences from a file, one on each line, in its order",
       TextKind(lengths_file_), "", "--lengths"},
      {"--ids-file", "FILE",
       "Take the token ids of sequences from a file, a JSON list on each line, in its order",
       TextKind(ids_file_), "", "--lengths --lengths-file"},
  };
}

absl::Status RequestFlags::Read() {
  workload_.token_ids = workload_.token_ids || !ids_file_.empty();
  absl::Status status = CheckCombination();
  if (status.ok()) sequences_ = ReadSequences();
  status.Update(sequences_.status());
  return status;
}

absl::Status RequestFlags::CheckCombination() const {
  if (stream_ && workload_.method == Method::kAttend) {
    return absl::InvalidArgumentError("--stream: cannot be combined with --method attend");
  }
  if (stream_ && workload_.protocol == Protocol::kOip) {
    return absl::InvalidArgumentError("--stream: cannot be combined with --protocol oip");
  }
  return absl::OkStatus();
}

absl::StatusOr<Sequences> RequestFlags::ReadSequences() const {
  if (!lengths_file_.empty()) {
    absl::StatusOr<std::vector<int64_t>> lengths = ReadLengths(lengths_file_);
    if (!lengths.ok()) return lengths.status();
    return Sequences::OfLengths(*std::move(lengths));
  }
  if (!ids_file_.empty()) {
    absl::StatusOr<std::vector<std::vector<int64_t>>> ids = ReadIds(ids_file_);
    if (!ids.ok()) return ids.status();
    return Sequences::OfIds(*std::move(ids));
  }
  absl::StatusOr<LengthDistribution> lengths = LengthDistribution::Parse(length_text_);
  if (!lengths.ok()) return Named("--lengths", lengths.status());
  return *std::move(lengths);
}

absl::StatusOr<Workload> RequestFlags::MakeWorkload(const ModelInfo& model) const {
  return Workload::Make(workload_, *sequences_, model);
}

std::string RequestFlags::DescribeMethod() const {
  const bool oip = workload_.protocol == Protocol::kOip;
  const bool attend = workload_.method == Method::kAttend;
  return absl::StrCat(attend ? kAttend : kEncode, stream_ ? ", over a stream per connection" : "",
                      oip ? ", through the Open Inference Protocol" : "");
}

std::vector<std::pair<std::string, std::string>> RequestFlags::Describe(
    const Workload& workload) const {
  const std::string input =
      workload_.token_ids ? "token ids" : absl::StrCat("hidden states, ", Name(workload_.dtype));
  std::string lengths = length_text_;
  if (!lengths_file_.empty()) lengths = absl::StrCat("from ", lengths_file_);
  if (!ids_file_.empty()) lengths = absl::StrCat("from ", ids_file_);
  const bool padded = workload_.padded || workload_.protocol == Protocol::kOip;
  return {{"lengths", lengths},
          {"batch", absl::StrCat(workload_.batch)},
          {"input", absl::StrCat(input, padded ? ", padded" : ", packed")},
          {"distinct requests", absl::StrFormat("%d of %.1f tokens on average", workload.size(),
                                                workload.mean_tokens())}};
}

}  // namespace attendant::client
