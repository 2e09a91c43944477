// Tests of attendant-server --describe as scripts use it: its output and exit code.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace describe_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  int code = -1;
  std::string out;  // standard output and standard error
};

Outcome RunServer(const std::string& flags) {
  const std::string command = absl::StrCat(ATTENDANT_SERVER_BINARY, " ", flags, " 2>&1");
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> chunk;
  while (const size_t bytes = std::fread(chunk.data(), 1, chunk.size(), pipe)) {
    outcome.out.append(chunk.data(), bytes);
  }
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(DescribeTest, AModelThatWouldBeServed) {
  const Outcome outcome = RunServer("--describe synthetic:tiny");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_THAT(outcome.out, StartsWith("source              synthetic:tiny\n"));
  EXPECT_THAT(outcome.out, EndsWith("\nThis server would serve it.\n"));
}

TEST(DescribeTest, OutputThatCannotBeWritten) {
  for (const std::string flags : {"--describe worked-example", "--version"}) {
    const Outcome outcome = RunServer(flags + " 2>&1 >/dev/full || echo exit code $?");
    EXPECT_EQ(outcome.out, "attendant-server: stdout: cannot be written\nexit code 1\n");
  }
}

TEST(DescribeTest, JsonForScripts) {
  const Outcome outcome = RunServer("--json --describe worked-example");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document["served"], true);
  EXPECT_EQ(document["description"]["layer"]["score_scale"], 1.0);
  EXPECT_EQ(document["weights"].size(), 6u);
}

// The cap leaves AVX2, whatever the CPU has.
TEST(DescribeTest, AComputeTypeThatTheInstructionSetDoesNotHave) {
  const Outcome outcome = RunServer("--describe synthetic:tiny,dtype=bf16 --isa avx2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("\nrefused: compute type bf16 requires a CPU with avx512_bf16 or amx; got "
                        "avx2 (after any cap); set emulate=true to compute bf16 on any CPU\n"));
}

TEST(DescribeTest, TooLittleMemory) {
  const Outcome outcome = RunServer("--describe synthetic:tiny --memory-limit-bytes 1MiB");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              HasSubstr("of memory, but the limit of --memory-limit-bytes is 1.0 MiB"));
}

TEST(DescribeTest, AModelWithoutSomeOfItsHeads) {
  const std::string file = ::testing::TempDir() + "/attendant-prune.json";
  std::ofstream(file) << R"({"0": [0, 2]})";
  const Outcome pruned = RunServer("--describe synthetic:tiny,prune=" + file);
  EXPECT_EQ(pruned.code, 0) << pruned.out;
  EXPECT_THAT(pruned.out, HasSubstr("\nheads of layer 0    1 3\n"));
  std::ofstream(file) << R"({"5": [0]})";
  const Outcome refused = RunServer("--describe synthetic:tiny,prune=" + file);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, HasSubstr("\nrefused: " + file + ": expected layers 0..1; got '5'\n"));
  std::remove(file.c_str());
}

TEST(DescribeTest, NothingThere) {
  const Outcome outcome = RunServer("--describe /nowhere --json");
  EXPECT_EQ(outcome.code, 1);
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document["served"], false);
  EXPECT_EQ(document["description"], nullptr);
  EXPECT_EQ(document["refusals"].size(), 1u);
}

TEST(DescribeTest, BadSettings) {
  EXPECT_EQ(RunServer("--describe ''").code, 2);
  EXPECT_EQ(RunServer("--describe").code, 2);
  const Outcome lone = RunServer("--json");
  EXPECT_EQ(lone.code, 2);
  EXPECT_EQ(lone.out, "attendant-server: --json: requires --describe; see --help\n");
  const Outcome key = RunServer("--describe worked-example,dtype=f8");
  EXPECT_EQ(key.code, 2);
  EXPECT_EQ(
      key.out,
      "attendant-server: --describe: expected f32, bf16x3, bf16 or int8 for dtype; got \"f8\"\n");
}

}  // namespace describe_test
}  // namespace attendant::server
