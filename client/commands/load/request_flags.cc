#include "client/commands/load/request_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/input_options.h"
#include "client/load_requests/input_files.h"

namespace attendant::client {
namespace {

constexpr char kAttend[] = "attend";
constexpr char kNative[] = "native";
constexpr char kOip[] = "oip";

}  // namespace

void RequestFlags::AddTo(CLI::App& load_test) {
  load_test.add_option("--method", method_, "What to call")
      ->check(CLI::IsMember({kAttend, "encode"}))
      ->type_name("attend|encode")
      ->capture_default_str();
  load_test.add_flag("--stream", stream_,
                     "encode: pipeline the requests over one EncodeStream per connection");
  load_test.add_option("--model", workload_.model,
                       "Name of the model; default: the server's only one");
  load_test
      .add_option("--protocol", protocol_,
                  "Whose calls to send: the server's own, or ModelInfer of the Open Inference "
                  "Protocol, padded and with raw contents")
      ->check(CLI::IsMember({kNative, kOip}))
      ->type_name("native|oip")
      ->capture_default_str();
  AddSequencesTo(load_test);
  load_test.add_option("--batch", workload_.batch, "Sequences in a request")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  load_test.add_flag("--padded", workload_.padded,
                     "Send [B, S, E] with padding instead of packed [T, E]");
  load_test.add_flag("--token-ids", workload_.token_ids, "Send token ids instead of hidden states");
  load_test.add_flag("--pooled", workload_.pooled,
                     "encode: ask for pooled vectors instead of hidden states");
  AddFloatType(load_test, "--wire-dtype", wire_dtype_,
               "Type of hidden states on the wire; default: float32");
  load_test.add_option("--seed", workload_.seed, "Seed of lengths, values and arrivals")
      ->capture_default_str();
}

void RequestFlags::AddSequencesTo(CLI::App& load_test) {
  CLI::Option* lengths = load_test
                             .add_option("--lengths", length_text_,
                                         "Tokens of each sequence: N, MIN..MAX (uniform), or "
                                         "lognormal:MEDIAN:SIGMA[:MAX] (MAX: 512)")
                             ->type_name("LENGTHS")
                             ->capture_default_str();
  CLI::Option* lengths_file =
      load_test
          .add_option("--lengths-file", lengths_file_,
                      "Take the lengths of sequences from a file, one a line, in its order")
          ->type_name("FILE")
          ->excludes(lengths);
  load_test
      .add_option("--ids-file", ids_file_,
                  "Take the token ids of sequences from a file, a JSON list a line, in its order")
      ->type_name("FILE")
      ->excludes(lengths)
      ->excludes(lengths_file);
}

absl::Status RequestFlags::Read() {
  workload_.method = method_ == kAttend ? Method::kAttend : Method::kEncode;
  workload_.protocol = protocol_ == kOip ? Protocol::kOip : Protocol::kNative;
  workload_.token_ids = workload_.token_ids || !ids_file_.empty();
  workload_.dtype = FloatType(wire_dtype_).value_or(DataType::kFloat32);
  absl::Status status = CheckCombination();
  if (status.ok()) sequences_ = ReadSequences();
  status.Update(sequences_.status());
  return status;
}

absl::Status RequestFlags::CheckCombination() const {
  if (stream_ && workload_.method == Method::kAttend) {
    return absl::InvalidArgumentError("attend has no --stream");
  }
  if (stream_ && workload_.protocol == Protocol::kOip) {
    return absl::InvalidArgumentError("--protocol oip has no --stream");
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
  return LengthDistribution::Parse(length_text_);
}

absl::StatusOr<Workload> RequestFlags::MakeWorkload(const ModelInfo& model) const {
  return Workload::Make(workload_, *sequences_, model);
}

std::string RequestFlags::DescribeMethod() const {
  const bool oip = workload_.protocol == Protocol::kOip;
  return absl::StrCat(method_, stream_ ? ", over a stream per connection" : "",
                      oip ? ", by the Open Inference Protocol" : "");
}

std::vector<std::pair<std::string, std::string>> RequestFlags::Describe(
    const Workload& workload) const {
  const std::string input =
      workload_.token_ids ? "token ids" : absl::StrCat("hidden states, ", Name(workload_.dtype));
  std::string lengths = length_text_;
  if (!lengths_file_.empty()) lengths = absl::StrCat("of ", lengths_file_);
  if (!ids_file_.empty()) lengths = absl::StrCat("of ", ids_file_);
  const bool padded = workload_.padded || workload_.protocol == Protocol::kOip;
  return {{"lengths", lengths},
          {"batch", absl::StrCat(workload_.batch)},
          {"input", absl::StrCat(input, padded ? ", padded" : ", packed")},
          {"distinct requests", absl::StrFormat("%d of %.1f tokens on average", workload.size(),
                                                workload.mean_tokens())}};
}

}  // namespace attendant::client
