// Tests of models of the Hugging Face Hub: --model NAME=hf:ORG/REPO, --pull, --offline,
// --model-cache.
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/integration/server_process.h"
#include "tests/support/fake_hub.h"
#include "tests/support/test_certificates.h"

namespace attendant::server {
namespace hub_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class HubServingTest : public ::testing::Test {
 protected:
  HubServingTest() {
    files_.Write("org/tiny/config.json", TinyBertConfig());
    files_.Write("org/tiny/model.safetensors", MakeSafetensors(TinyBertTensors()));
    files_.Write("org/tiny/tokenizer.json", R"({"model": {}})");
  }

  std::vector<std::string> Environment() const {
    return {absl::StrCat("HF_ENDPOINT=", hub_ ? hub_->endpoint() : "http://127.0.0.1:1"),
            absl::StrCat("HOME=", home_.path())};
  }
  // Before the server's own command.
  std::vector<std::string> Launcher() const {
    std::vector<std::string> launcher = {"env"};
    for (const std::string& variable : Environment()) launcher.push_back(variable);
    return launcher;
  }

  struct Outcome {
    int code = -1;
    std::string out;  // standard output
  };
  Outcome RunToItsEnd(const std::string& flags) const {
    const std::string command = absl::StrCat("env ", absl::StrJoin(Environment(), " "), " ",
                                             ATTENDANT_SERVER_BINARY, " ", flags);
    Outcome outcome;
    std::FILE* pipe = popen(command.c_str(), "r");
    for (int c; (c = std::fgetc(pipe)) != EOF;) outcome.out += static_cast<char>(c);
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

  // Returns the one line of a start that must fail.
  std::string BadLine(const std::vector<std::string>& flags) const {
    std::vector<std::string> all = {"--address=127.0.0.1", "--port=0", "--http-port=0"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ServerProcess::End end = ServerProcess(all, Environment()).AwaitEnd();
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.lines, SizeIs(1));
    return end.lines.empty() ? "" : end.lines.back();
  }

  std::string Snapshots() const {
    return home_.File(".cache/huggingface/hub/models--org--tiny/snapshots");
  }

  TempFolder files_, home_;
  std::unique_ptr<test_support::FakeHub> hub_ =
      std::make_unique<test_support::FakeHub>(files_.path());
};

v1::GetModelResponse ModelOf(const ReadyServer& server, const std::string& name) {
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_model(name);
  v1::GetModelResponse response;
  EXPECT_TRUE(server.NewStub()->GetModel(&context, request, &response).ok());
  return response;
}

TEST_F(HubServingTest, ServesARepositoryAndTellsItsCommit) {
  std::string commit;
  {
    ReadyServer server({"--model=m=hf:org/tiny,dtype=bf16,emulate=true"}, Launcher());
    const v1::GetModelResponse model = ModelOf(server, "m");
    EXPECT_EQ(model.hub_repository(), "org/tiny");
    commit = model.hub_commit();
    EXPECT_THAT(commit, SizeIs(40));
    EXPECT_EQ(model.layers(), 2);
    EXPECT_EQ(model.compute_type(), "bf16");
    EXPECT_TRUE(fs::is_symlink(Snapshots() + "/" + commit + "/model.safetensors"));
  }
  hub_.reset();
  ReadyServer offline({"--offline", "--model=m=hf:org/tiny"}, Launcher());
  EXPECT_EQ(ModelOf(offline, "m").hub_commit(), commit);
  // A folder of the cache is a model too.
  ReadyServer folder({absl::StrCat("--model=m=", Snapshots(), "/", commit)});
  EXPECT_EQ(ModelOf(folder, "m").layers(), 2);
  EXPECT_EQ(ModelOf(folder, "m").hub_repository(), "");
}

TEST_F(HubServingTest, ARepositoryWithoutANameHasItsOwn) {
  ReadyServer server({"--model=hf:org/tiny,dtype=int8,emulate=true"}, Launcher());
  EXPECT_EQ(ModelOf(server, "org/tiny").hub_repository(), "org/tiny");
  EXPECT_EQ(ModelOf(server, "org/tiny").compute_type(), "int8");
}

TEST_F(HubServingTest, TheLogTellsTheCommit) {
  ServerProcess server(
      {"--address=127.0.0.1", "--port=0", "--http-port=0", "--model=m=hf:org/tiny@main"},
      Environment());
  EXPECT_THAT(server.AwaitLine("pulled 100 %"), HasSubstr("hf:org/tiny@main: pulled 100 % of "));
  EXPECT_THAT(server.AwaitLine("model m: bert"), HasSubstr("from hf:org/tiny@main (commit "));
}

TEST_F(HubServingTest, ServesWhatTheCacheHasWhereTheHubCannotBeReached) {
  EXPECT_EQ(RunToItsEnd("--pull org/tiny 2>/dev/null").code, 0);
  hub_.reset();
  ServerProcess server(
      {"--address=127.0.0.1", "--port=0", "--http-port=0", "--model=m=hf:org/tiny"}, Environment());
  EXPECT_THAT(server.AwaitLine(" from the cache"),
              AllOf(HasSubstr(" warning "), HasSubstr("cannot reach the Hub")));
  server.AwaitLine("ready: ");
}

TEST_F(HubServingTest, TwoModelsMayShareARepository) {
  ReadyServer server({"--model=a=hf:org/tiny", "--model=b=hf:org/tiny,dtype=int8,emulate=true"},
                     Launcher());
  EXPECT_EQ(ModelOf(server, "a").hub_commit(), ModelOf(server, "b").hub_commit());
  EXPECT_THAT(hub_->Requests(), Contains(HasSubstr("cdn GET")).Times(1));
}

TEST_F(HubServingTest, PullsAloneAndPrintsTheFolder) {
  const TempFolder cache;
  const Outcome outcome = RunToItsEnd(
      absl::StrCat("--pull org/tiny@main --model-cache ", cache.path(), " 2>/dev/null"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(StartsWith(cache.File("models--org--tiny/snapshots/")),
                                 ::testing::EndsWith("\n")));
  EXPECT_TRUE(fs::exists(outcome.out.substr(0, outcome.out.size() - 1) + "/config.json"));
  EXPECT_EQ(
      RunToItsEnd(absl::StrCat("--pull hf:org/tiny --offline --model-cache ", cache.path())).out,
      outcome.out);
}

TEST_F(HubServingTest, APullThatFailsSaysWhy) {
  EXPECT_EQ(RunToItsEnd("--pull org/tiny 2>/dev/null").code, 0);
  const Outcome missing = RunToItsEnd("--pull no/where 2>&1");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.out, StartsWith("attendant-server: hf:no/where: no such repository, or it "
                                      "is private, HTTP 401"));
  hub_.reset();
  // What is there already is no reason to say that it was pulled.
  const Outcome unreachable = RunToItsEnd("--pull org/tiny 2>&1");
  EXPECT_EQ(unreachable.code, 1);
  EXPECT_THAT(unreachable.out, HasSubstr("attendant-server: hf:org/tiny: cannot reach the Hub"));
  EXPECT_THAT(RunToItsEnd("--pull org/other --offline 2>&1").out,
              HasSubstr("hf:org/other: not complete in the cache"));
}

TEST_F(HubServingTest, DescribesARepository) {
  const Outcome outcome = RunToItsEnd("--describe hf:org/tiny 2>/dev/null");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(StartsWith("source              hf:org/tiny\n"),
                                 HasSubstr("\nfrom the Hub        org/tiny, commit "),
                                 HasSubstr("\nThis server would serve it.\n")));
  EXPECT_EQ(RunToItsEnd("--describe hf:no/where 2>/dev/null").code, 1);
}

TEST_F(HubServingTest, ABadStartIsOneLine) {
  EXPECT_THAT(BadLine({"--model=m=hf:no/where"}),
              StartsWith("attendant-server: model m: hf:no/where: no such repository"));
  hub_->Set(R"({"gated": ["org/tiny"]})");
  EXPECT_THAT(
      BadLine({"--model=m=hf:org/tiny"}),
      AllOf(StartsWith("attendant-server: model m: hf:org/tiny: tokenizer.json: gated, HTTP 401"),
            HasSubstr("set HF_TOKEN")));
  EXPECT_THAT(BadLine({"--model=m=hf:org/tiny", "--offline"}),
              HasSubstr("hf:org/tiny: not complete in the cache " + home_.path()));
  EXPECT_THAT(BadLine({"--model=m=hf:org/tiny", "--model-cache=/proc/x"}),
              AllOf(HasSubstr("cannot write /proc/x"), HasSubstr("--model-cache")));
}

TEST_F(HubServingTest, ABareNameIsAnsweredWithTheForm) {
  EXPECT_EQ(BadLine({"--model=BAAI/bge-small-en-v1.5"}),
            "attendant-server: --model: expected NAME=SOURCE[,key=value...]; got "
            "\"BAAI/bge-small-en-v1.5\"; to serve that Hub repository: --model "
            "hf:BAAI/bge-small-en-v1.5");
  EXPECT_THAT(BadLine({"--model=x=BAAI/bge-small-en-v1.5"}),
              ::testing::EndsWith("; to serve that Hub repository: --model "
                                  "x=hf:BAAI/bge-small-en-v1.5"));
}

TEST_F(HubServingTest, AKilledServerGoesOnWhereItEnded) {
  hub_->Fail(R"({"path": "^cdn/", "times": 1, "hold": true})");
  {
    ServerProcess server(
        {"--address=127.0.0.1", "--port=0", "--http-port=0", "--model=m=hf:org/tiny"},
        Environment());
    while (hub_->ValuesOf("path", "?signature=x").empty()) std::this_thread::yield();
    const std::string blobs = fs::path(Snapshots()).replace_filename("blobs");
    const auto has_begun = [&] {
      return std::any_of(fs::directory_iterator(blobs), {}, [](const auto& entry) {
        return entry.path().extension() == ".incomplete" && entry.file_size() > 100;
      });
    };
    while (!has_begun()) std::this_thread::yield();
    server.Signal(SIGTERM);
    EXPECT_EQ(server.AwaitEnd().code, 128 + SIGTERM);
  }
  EXPECT_FALSE(fs::exists(Snapshots()));
  hub_->Release();
  ReadyServer server({"--model=m=hf:org/tiny"}, Launcher());
  EXPECT_EQ(ModelOf(server, "m").layers(), 2);
  EXPECT_THAT(hub_->ValuesOf("range", "?signature=x"), ElementsAre("", StartsWith("bytes=")));
}

TEST_F(HubServingTest, TwoProcessesPullTheSame) {
  hub_->Fail(R"({"path": "^cdn/", "times": 1, "hold": true})");
  ServerProcess first({"--pull=org/tiny"}, Environment());
  while (hub_->ValuesOf("path", "?signature=x").empty()) std::this_thread::yield();
  ServerProcess second({"--pull=org/tiny"}, Environment());
  second.AwaitLine("model.safetensors: waiting for another process");
  hub_->Release();
  EXPECT_EQ(first.AwaitEnd().code, 0);
  EXPECT_EQ(second.AwaitEnd().code, 0);
  EXPECT_THAT(hub_->Requests(), Contains(HasSubstr("cdn GET")).Times(1));
}

TEST_F(HubServingTest, TheTokenIsReadFromTheVariableOrTheLogin) {
  hub_->Set(R"({"token": "secret", "private": ["org/tiny"]})");
  const Outcome refused = RunToItsEnd("--pull org/tiny 2>&1");
  EXPECT_EQ(refused.code, 1);
  home_.Write(".cache/huggingface/token", "secret\n");
  const Outcome pulled = RunToItsEnd("--pull org/tiny --log-level debug 2>&1");
  EXPECT_EQ(pulled.code, 0) << pulled.out;
  EXPECT_THAT(pulled.out, Not(HasSubstr("secret")));
}

TEST_F(HubServingTest, VerifiesCertificates) {
  const test_support::TestCa ca;
  const test_support::IssuedCertificate issued = ca.Issue();
  home_.Write("ca", ca.certificate());
  home_.Write("certificate", issued.certificate);
  home_.Write("key", issued.key);
  hub_ = std::make_unique<test_support::FakeHub>(files_.path(), home_.File("certificate"),
                                                 home_.File("key"));
  EXPECT_THAT(BadLine({"--model=m=hf:org/tiny"}),
              AllOf(HasSubstr("hf:org/tiny: the certificate cannot be verified: https://127.0.0.1"),
                    HasSubstr("SSL_CERT_FILE")));
  EXPECT_THAT(hub_->Requests(), IsEmpty());
  std::vector<std::string> launcher = Launcher();
  launcher.push_back(absl::StrCat("SSL_CERT_FILE=", home_.File("ca")));
  ReadyServer server({"--model=m=hf:org/tiny"}, launcher);
  EXPECT_EQ(ModelOf(server, "m").hub_repository(), "org/tiny");
}

}  // namespace hub_test
}  // namespace attendant::server
