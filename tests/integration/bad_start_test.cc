// Tests that a failed start prints one line on standard error that says what to do, and exits with
// code 2.
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_process.h"

namespace attendant::server {
namespace bad_start_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the one line of a start that must fail. Ports are free ones, unless the flags name
// others.
std::string BadStart(const std::vector<std::string>& flags,
                     const std::vector<std::string>& environment = {}) {
  std::vector<std::string> all = {"--address=127.0.0.1", "--port=0", "--http-port=0"};
  all.insert(all.end(), flags.begin(), flags.end());
  const ServerProcess::End end = ServerProcess(all, environment).AwaitEnd();
  EXPECT_EQ(end.code, 2);
  EXPECT_EQ(end.lines.size(), 1u) << testing::PrintToString(end.lines);
  return end.lines.empty() ? "" : end.lines[0];
}

TEST(BadStartTest, NonsenseSettings) {
  EXPECT_EQ(BadStart({"--max-batch-token=5"}),
            "attendant-server: unknown flag --max-batch-token; did you mean "
            "--max-batch-tokens?; "
            "see --help");
  EXPECT_EQ(BadStart({"--port=http"}),
            "attendant-server: --port: expected an integer from 0 to 65535; got \"http\"");
  EXPECT_EQ(
      BadStart({}, {"ATTENDANT_MAX_INFLIGHT=0"}),
      "attendant-server: ATTENDANT_MAX_INFLIGHT: expected an integer from 1 to 65536; got \"0\"");
  EXPECT_EQ(BadStart({}, {"ATTENDANT_LOG_LEVELS=info"}),
            "attendant-server: unknown variable ATTENDANT_LOG_LEVELS; did you mean "
            "ATTENDANT_LOG_LEVEL?");
  EXPECT_EQ(BadStart({"--config=/nowhere.ini"}),
            "attendant-server: config file /nowhere.ini: cannot be read");
  EXPECT_EQ(BadStart({"--port=line\nbreak"}),
            "attendant-server: --port: expected an integer from 0 to 65535; got \"line\\nbreak\"");
}

TEST(BadStartTest, Models) {
  EXPECT_THAT(BadStart({"--model=m=/nowhere/model"}),
              AllOf(StartsWith("attendant-server: model m: "), HasSubstr("/nowhere/model")));
  EXPECT_THAT(BadStart({"--model=m=synthetic:enormous"}),
              AllOf(StartsWith("attendant-server: model m: "), HasSubstr("enormous")));
  EXPECT_EQ(BadStart({"--model=a=worked-example", "--model=a=synthetic:tiny"}),
            "attendant-server: --model: two models are named \"a\"");
}

TEST(BadStartTest, Aliases) {
  EXPECT_EQ(BadStart({"--model=a=synthetic:tiny", "--alias=b=c"}),
            "attendant-server: --alias: b=c: no model is named \"c\"; the model is \"a\"");
  EXPECT_EQ(BadStart({"--model=a=synthetic:tiny", "--alias=a=a"}),
            "attendant-server: --alias: expected a name that is not a model's; got \"a\"");
}

// The cap leaves AVX2, whatever the CPU has.
TEST(BadStartTest, AComputeTypeThatTheInstructionSetDoesNotHave) {
  EXPECT_EQ(BadStart({"--isa=avx2", "--model=m=synthetic:tiny,dtype=bf16x3"}),
            "attendant-server: model m: compute type bf16x3 requires a CPU with amx; got avx2 "
            "(after any cap); set emulate=true to compute bf16x3 on any CPU");
  EXPECT_EQ(
      BadStart({"--isa=avx2", "--model=m=synthetic:tiny,dtype=bf16"}),
      "attendant-server: model m: compute type bf16 requires a CPU with avx512_bf16 or amx; got "
      "avx2 (after any cap); set emulate=true to compute bf16 on any CPU");
  EXPECT_EQ(BadStart({"--isa=avx2", "--model=m=synthetic:tiny,dtype=int8,gemm=onednn"}),
            "attendant-server: model m: compute type int8 with gemm=onednn requires a CPU with "
            "avx512_vnni or amx; got avx2 (after any cap); use gemm=vector");
  EXPECT_EQ(BadStart({"--model=m=synthetic:tiny,dtype=int8,weights=bf16"}),
            "attendant-server: model m: weights=bf16 requires dtype=f32; got int8");
  EXPECT_EQ(BadStart({"--isa=avx2", "--model=m=synthetic:tiny,dtype=bf16,gemm=tiles"}),
            "attendant-server: model m: gemm=tiles requires a CPU with amx; got avx2 (after any "
            "cap); use gemm=auto");
}

TEST(BadStartTest, TakenPorts) {
  const TakenPort taken;
  EXPECT_EQ(BadStart({absl::StrCat("--port=", taken.port())}),
            absl::StrCat("attendant-server: cannot listen on 127.0.0.1 port ", taken.port(),
                         " for gRPC: Address already in use"));
  EXPECT_EQ(BadStart({absl::StrCat("--http-port=", taken.port())}),
            absl::StrCat("attendant-server: cannot listen on 127.0.0.1 port ", taken.port(),
                         " for HTTP: Address already in use"));
}

TEST(BadStartTest, ASecondServerOnTheSamePort) {
  ReadyServer first;
  EXPECT_THAT(BadStart({absl::StrCat("--port=", first.port())}),
              HasSubstr("for gRPC: Address already in use"));
  EXPECT_THAT(BadStart({absl::StrCat("--http-port=", first.http_port())}),
              HasSubstr("for HTTP: Address already in use"));
}

TEST(BadStartTest, AnAddressOfAnotherMachine) {
  EXPECT_THAT(BadStart({"--address=192.0.2.1"}),
              StartsWith("attendant-server: cannot listen on 192.0.2.1 port 0 for HTTP: "));
  EXPECT_THAT(BadStart({"--address=192.0.2.1", "--http-address=127.0.0.1"}),
              StartsWith("attendant-server: cannot listen on 192.0.2.1 port 0 for gRPC: "));
  EXPECT_THAT(BadStart({"--http-address=no.such.name.invalid"}),
              StartsWith("attendant-server: cannot listen on no.such.name.invalid port 0 for "
                         "HTTP: "));
}

TEST(BadStartTest, TooLittleMemoryNamesEveryShare) {
  const std::string line = BadStart(
      {"--model=m=synthetic:bert-large", "--memory-limit-bytes=1GiB", "--max-request-tokens=1024"});
  EXPECT_THAT(line, AllOf(StartsWith("attendant-server: needs "),
                          HasSubstr("the limit of --memory-limit-bytes is 1024.0 MiB: weights "),
                          HasSubstr("activations "),
                          HasSubstr("at least 8.2 MiB for requests (--max-request-tokens)"),
                          HasSubstr("66.0 MiB for gRPC")));
}

#ifndef __SANITIZE_ADDRESS__  // which reserves terabytes of addresses
TEST(BadStartTest, AMemoryLimitThatTheServerDoesNotKnow) {
  const std::string command = absl::StrCat("ulimit -v 700000; exec ", ATTENDANT_SERVER_BINARY,
                                           " --address=127.0.0.1 --port=0 --http-port=0 "
                                           "--log-level=error --model=m=synthetic:tiny "
                                           "--max-request-tokens=1048576 "
                                           "--max-queue-tokens=1048576 2>&1");
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 2);
  EXPECT_EQ(out,
            "attendant-server: out of memory: a limit applies that the server does not know, such "
            "as ulimit -v; raise it, or set --memory-limit-bytes below it to see how much "
            "memory the server needs\n");
}
#endif

TEST(BadStartTest, LimitsThatDoNotFitTheModel) {
  EXPECT_EQ(BadStart({"--model=m=synthetic:bert-base", "--max-request-tokens=1048576",
                      "--max-queue-tokens=1048576"}),
            "attendant-server: --max-request-tokens: 1048576 rows of 768 float32 do not fit into a "
            "message (at most 2 GiB)");
}

TEST(BadStartTest, APortFileThatCannotBeWritten) {
  EXPECT_EQ(BadStart({"--port-file=/nowhere/ports"}),
            "attendant-server: --port-file: cannot write /nowhere/ports");
}

}  // namespace bad_start_test
}  // namespace attendant::server
