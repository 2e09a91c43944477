#include "tests/bench/worker.h"

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/cpu_budget.h"
#include "engine/kernels/isa.h"

namespace attendant::bench {
namespace {

absl::StatusOr<std::vector<Batch>> ReadBatches(const std::string& file) {
  std::ifstream stream(file);
  const nlohmann::json content = nlohmann::json::parse(stream, nullptr, false);
  if (!content.is_object() || !content.contains("batches")) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": expected {\"batches\": …}"));
  }
  std::vector<Batch> batches;
  for (const nlohmann::json& sequences : content["batches"]) {
    Batch& batch = batches.emplace_back();
    batch.cu_seqlens.push_back(0);
    for (const nlohmann::json& ids : sequences) {
      for (const nlohmann::json& id : ids) batch.token_ids.push_back(id.get<int32_t>());
      batch.cu_seqlens.push_back(static_cast<int32_t>(batch.token_ids.size()));
    }
  }
  return batches;
}

absl::StatusOr<std::string> RunTimes(Contender& contender, const std::string& times) {
  int count = 0;
  if (!absl::SimpleAtoi(times, &count) || count < 1) {
    return absl::InvalidArgumentError(absl::StrCat("run: expected a count, got '", times, "'"));
  }
  std::ostringstream seconds;
  seconds.precision(9);
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<double> once = contender.Run();
    if (!once.ok()) return once.status();
    seconds << (i == 0 ? "" : " ") << *once;
  }
  return seconds.str();
}

absl::StatusOr<std::string> Answer(Contender& contender, const std::string& command,
                                   const std::string& argument, bool& prepared) {
  if (command == "prepare") {
    prepared = false;
    absl::StatusOr<std::vector<Batch>> batches = ReadBatches(argument);
    if (!batches.ok()) return batches.status();
    if (absl::Status status = contender.Prepare(*std::move(batches)); !status.ok()) return status;
    prepared = true;
    return "";
  }
  if (command == "facts") return contender.Facts().dump();
  if (!prepared) return absl::FailedPreconditionError("no case is prepared");
  if (command == "run") return RunTimes(contender, argument);
  if (command == "save") {
    if (absl::Status status = contender.Save(argument); !status.ok()) return status;
    return "";
  }
  return absl::InvalidArgumentError(absl::StrCat("no such command: ", command));
}

// Caps the instruction set of the kernels and of oneDNN.
absl::Status Cap(const std::string& name) {
  for (const auto& [known, cap] : IsaCaps()) {
    if (known == name) return CapIsa(cap);
  }
  return absl::InvalidArgumentError(absl::StrCat("--isa: no such instruction set: ", name));
}

// The protocol has messages in one line.
std::string OneLine(const absl::Status& status) {
  return absl::StrReplaceAll(std::string(status.message()), {{"\n", " "}});
}

absl::StatusOr<WorkerOptions> ParseOptions(int argc, char** argv) {
  std::map<std::string, std::string> values;
  for (int i = 1; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  WorkerOptions options;
  options.model = values["--model"];
  if (values.contains("--dtype")) options.dtype = values["--dtype"];
  if (values.contains("--weights")) options.weights = values["--weights"];
  if (values.contains("--isa")) options.isa = values["--isa"];
  if (values.contains("--gemm")) options.gemm = values["--gemm"];
  if (values.contains("--split")) options.split = values["--split"];
  if (values.contains("--products")) options.products = values["--products"];
  if (values.contains("--threads") && !absl::SimpleAtoi(values["--threads"], &options.threads)) {
    return absl::InvalidArgumentError("--threads: expected a number");
  }
  if (values.contains("--row-multiple") &&
      (!absl::SimpleAtoi(values["--row-multiple"], &options.row_multiple) ||
       options.row_multiple < 1)) {
    return absl::InvalidArgumentError("--row-multiple: expected a number");
  }
  if (options.model.empty()) return absl::InvalidArgumentError("--model is missing");
  if (options.threads < 1) options.threads = MeasureCpuBudget().threads;
  return options;
}

}  // namespace

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<ComputeType> TypeNamed(const std::string& name) {
  if (const std::optional<ComputeType> type = ValueIn(kComputeTypeNames, name)) return *type;
  return absl::InvalidArgumentError(absl::StrCat("--dtype: no such type: ", name));
}

absl::Status Contender::Save(const std::string& file) {
  return absl::UnimplementedError(absl::StrCat("nothing to save to ", file));
}

int ServeContender(
    int argc, char** argv,
    const std::function<absl::StatusOr<std::unique_ptr<Contender>>(const WorkerOptions&)>& make) {
  absl::StatusOr<WorkerOptions> options = ParseOptions(argc, argv);
  if (options.ok()) {
    if (absl::Status status = Cap(options->isa); !status.ok()) options = status;
  }
  absl::StatusOr<std::unique_ptr<Contender>> contender =
      options.ok() ? make(*options) : options.status();
  if (!contender.ok()) {
    std::cout << "refused " << OneLine(contender.status()) << std::endl;
    return 0;
  }
  std::cout << "ready" << std::endl;
  bool prepared = false;
  for (std::string line; std::getline(std::cin, line);) {
    const size_t space = line.find(' ');
    const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    const absl::StatusOr<std::string> answer =
        Answer(**contender, line.substr(0, space), argument, prepared);
    if (answer.ok()) {
      std::cout << "ok " << *answer << std::endl;
    } else {
      std::cout << "error " << OneLine(answer.status()) << std::endl;
    }
  }
  return 0;
}

}  // namespace attendant::bench
