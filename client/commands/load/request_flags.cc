#include "client/commands/load/request_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/input_options.h"

namespace attendant::client {
namespace {

constexpr char kAttend[] = "attend";

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
      .add_option("--lengths", length_text_,
                  "Tokens of each sequence: N, MIN..MAX (uniform), or "
                  "lognormal:MEDIAN:SIGMA[:MAX] (MAX: 512)")
      ->type_name("LENGTHS")
      ->capture_default_str();
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

absl::Status RequestFlags::Read() {
  lengths_ = LengthDistribution::Parse(length_text_);
  if (!lengths_.ok()) return lengths_.status();
  workload_.method = method_ == kAttend ? Method::kAttend : Method::kEncode;
  if (stream_ && workload_.method == Method::kAttend) {
    return absl::InvalidArgumentError("attend has no --stream");
  }
  workload_.dtype = FloatType(wire_dtype_).value_or(DataType::kFloat32);
  return absl::OkStatus();
}

absl::StatusOr<Workload> RequestFlags::MakeWorkload(const ModelInfo& model) const {
  return Workload::Make(workload_, *lengths_, model);
}

std::string RequestFlags::DescribeMethod() const {
  return absl::StrCat(method_, stream_ ? ", over a stream per connection" : "");
}

std::vector<std::pair<std::string, std::string>> RequestFlags::Describe(
    const Workload& workload) const {
  const std::string input =
      workload_.token_ids ? "token ids" : absl::StrCat("hidden states, ", Name(workload_.dtype));
  return {{"lengths", length_text_},
          {"batch", absl::StrCat(workload_.batch)},
          {"input", absl::StrCat(input, workload_.padded ? ", padded" : ", packed")},
          {"distinct requests", absl::StrFormat("%d of %.1f tokens on average", workload.size(),
                                                workload.mean_tokens())}};
}

}  // namespace attendant::client
