// Tests of models in folders as the usual tools leave them, under the names that they have there.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/integration/server_process.h"
#include "tests/support/raw_call.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace folders_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kPointer[] =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 17098108\n";

class FoldersTest : public ::testing::Test {
 protected:
  void WriteModel(const std::string& folder) const {
    folder_.Write(folder + "/config.json", TinyBertConfig());
    folder_.Write(folder + "/model.safetensors", MakeSafetensors(TinyBertTensors()));
    folder_.Write(folder + "/tokenizer.json", R"({"model": {}})");
  }

  // Makes a snapshot as the cache of the Hub's library has it, and returns its folder.
  std::string MakeSnapshot() const {
    const fs::path home = folder_.File("hub/models--org--tiny");
    WriteModel("hub/models--org--tiny/files");
    fs::create_directories(home / "blobs");
    fs::create_directories(home / "snapshots/c0ffee");
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
      fs::rename(home / "files" / name, home / "blobs" / (std::string("digest-of-") + name));
      fs::create_symlink(std::string("../../blobs/digest-of-") + name,
                         home / "snapshots/c0ffee" / name);
    }
    return home / "snapshots/c0ffee";
  }

  // Returns the lines of a start that must fail.
  std::vector<std::string> BadStart(const std::string& flag) const {
    const ServerProcess::End end =
        ServerProcess({"--address=127.0.0.1", "--port=0", "--http-port=0", flag}).AwaitEnd();
    EXPECT_EQ(end.code, 2);
    return end.lines;
  }

  TempFolder folder_;
};

std::string Infer(const ReadyServer& server, const std::string& path) {
  const std::string body =
      R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,2],"data":[3,4]}]})";
  return Exchange(server.http_port(),
                  absl::StrCat("POST /v2/models/", path, "/infer HTTP/1.1\r\nHost: x\r\n",
                               "Content-Length: ", body.size(), "\r\n\r\n", body));
}

grpc::Status Encode(const ReadyServer& server, const std::string& model) {
  v1::EncodeRequest request;
  request.set_model(model);
  v1::Tensor& ids = *request.mutable_token_ids();
  ids.set_dtype(v1::INT32);
  ids.add_shape(1);
  ids.add_shape(2);
  ids.set_data(std::string("\x03\0\0\0\x04\0\0\0", 8));
  v1::EncodeResponse response;
  grpc::ClientContext call;
  return server.NewStub()->Encode(&call, request, &response);
}

grpc::Status GetTokenizer(const ReadyServer& server, const std::string& model) {
  v1::GetTokenizerRequest request;
  request.set_model(model);
  v1::GetTokenizerResponse response;
  grpc::ClientContext call;
  return server.NewStub()->GetTokenizer(&call, request, &response);
}

TEST_F(FoldersTest, ASnapshotOfTheHubsCacheIsServedUnderTheIdOfItsRepository) {
  ReadyServer server({"--model=org/tiny=" + MakeSnapshot(), "--alias=other=org/tiny"});
  EXPECT_TRUE(Encode(server, "org/tiny").ok());
  EXPECT_TRUE(GetTokenizer(server, "org/tiny").ok());
  EXPECT_THAT(Infer(server, "org/tiny"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr(R"("model_name":"org/tiny")")));
  EXPECT_THAT(Infer(server, "org%2Ftiny"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(server.Get("/v2/models/org/tiny/ready"), StartsWith("HTTP/1.1 200"));
  for (const char* method : {"Check", "Watch"}) {
    for (const char* name : {"org/tiny", "other"}) {
      RawCall health(server.NewChannel(), absl::StrCat("/grpc.health.v1.Health/", method));
      health.Write(TextField(1, name));
      health.WritesDone();
      EXPECT_EQ(Number(health.Read().value_or(""), 1), kServing) << method << " " << name;
      if (method == std::string("Check")) {
        EXPECT_TRUE(health.Finish().ok());
      }
    }
  }
  const client::Outcome told =
      client::RunWith({"models", "org/tiny", "--address", server.address()});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("org/tiny"));
  EXPECT_EQ(client::RunWith({"health", "org/tiny", "--address", server.address()}).exit_code, 0);
  server.ExpectMetrics(AllOf(HasSubstr("method=\"ModelInfer\",model=\"org/tiny\"} 2\n"),
                             HasSubstr("method=\"Encode\",model=\"org/tiny\"} 1\n")));
}

TEST_F(FoldersTest, ARepositoryHasModelsOfOrganizationsAndLinks) {
  const std::string snapshot = MakeSnapshot();
  fs::create_directories(folder_.File("models/org/tiny"));
  fs::create_directory_symlink(snapshot, folder_.File("models/org/tiny/7"));
  fs::create_directory_symlink(folder_.File("models/org/tiny"), folder_.File("models/linked"));
  folder_.Write("models/org/broken/3/config.json", kPointer);
  fs::create_directory_symlink(folder_.File("models"), folder_.File("repository"));
  ReadyServer server({"--model-repository=" + folder_.File("repository")});
  EXPECT_TRUE(Encode(server, "org/tiny").ok());
  EXPECT_TRUE(Encode(server, "linked").ok());
  EXPECT_THAT(Infer(server, "org/tiny/versions/7"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(
      Exchange(server.http_port(),
               "POST /v2/repository/index HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
      AllOf(HasSubstr(R"({"name":"org/tiny","version":"7","state":"READY")"),
            HasSubstr(R"({"name":"org/broken","version":"3","state":"UNAVAILABLE",)"
                      R"("reason":"config.json: expected the file itself; got a Git LFS)"),
            Not(HasSubstr(folder_.path()))));
}

TEST_F(FoldersTest, AModelWhoseTokenizerCannotBeReadTakesIdsAlone) {
  WriteModel("m");
  folder_.Write("m/tokenizer.json", kPointer);
  ServerProcess logged(
      {"--address=127.0.0.1", "--port=0", "--http-port=0", "--model=org/m=" + folder_.File("m")});
  EXPECT_THAT(logged.AwaitLine("tokenizer.json"),
              AllOf(HasSubstr(" warning "), HasSubstr("model org/m: "),
                    HasSubstr("git lfs pull in its directory; the model takes only token ids")));
  ReadyServer server({"--model=org/m=" + folder_.File("m")});
  EXPECT_TRUE(Encode(server, "org/m").ok());
  const grpc::Status none = GetTokenizer(server, "org/m");
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(none.error_message(),
              AllOf(StartsWith("model org/m has no tokenizer: its tokenizer.json cannot be read: "
                               "expected the file itself; got a Git LFS pointer to it"),
                    Not(HasSubstr(folder_.path()))));
}

TEST_F(FoldersTest, OtherFilesInPlaceOfWeightsAreToldFirst) {
  WriteModel("pointer");
  folder_.Write("pointer/model.safetensors", kPointer);
  EXPECT_THAT(BadStart("--model=m=" + folder_.File("pointer")),
              Contains(HasSubstr("/model.safetensors: expected the file itself; got a Git LFS "
                                 "pointer to it; run git lfs pull")));
  folder_.Write("pickle/config.json", TinyBertConfig());
  folder_.Write("pickle/pytorch_model.bin", "pickle");
  EXPECT_THAT(
      BadStart("--model=m=" + folder_.File("pickle")),
      Contains(AllOf(HasSubstr("/pickle: only safetensors are read; got 'pytorch_model.bin', "),
                     HasSubstr("glob.glob('pytorch_model.bin')"))));
  folder_.Write("gguf/bge-q8.gguf", "GGUF");
  EXPECT_THAT(BadStart("--model=m=" + folder_.File("gguf")),
              Contains(HasSubstr("/gguf: only safetensors are read; got 'bge-q8.gguf'; save ")));
}

TEST_F(FoldersTest, AFamilyThatIsNoneIsAnsweredWithTheList) {
  folder_.Write("m/config.json", R"({"model_type": "gpt2", "architectures": ["GPT2Model"]})");
  EXPECT_THAT(BadStart("--model=m=" + folder_.File("m")),
              Contains(AllOf(HasSubstr("model_type: expected one of bert, roberta, "),
                             EndsWith("got 'gpt2'"))));
}

}  // namespace folders_test
}  // namespace attendant::server
