// FakeServer, a server in this process that answers as a test wants, on a port of its own.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "attendant/v1/encoder_service.grpc.pb.h"

namespace attendant::client {

// Records every request, and answers each method as follows:
// - Attend: the hidden states come back as the output, and as probabilities if asked for, with an
//   execution.
// - Encode: hidden states (zeros [B, S, 2] for token ids), pooled vectors, and the wanted layers.
//   Texts have as many tokens as bytes. CLASSIFIER gives each text, or the second one of a pair, a
//   tenth of its bytes for its first class, and 0 for others; other vectors are zeros. A query has
//   one token vector, {1, 2}, by which a text scores its bytes.
// - Tokenize: for each text, [CLS], and a token for all of it. GetModel: "b" takes no texts.
// - EncodeStream: as Encode, the last request first; a request without input gets an error.
// - ListModels: "a" and "b", which GetModel knows; for GetModel an empty name is "a".
// - GetTokenizer: "a" has one, "{}", and "b" has none.
// - PutMemory: the handle "h1", of 96 bytes, which DropMemory knows.
// - Health: as set_healthy says for the server and "a"; NOT_FOUND for other names.
// Thread-safe.
class FakeServer : private v1::EncoderService::Service {
 public:
  FakeServer();
  ~FakeServer() override;

  const std::string& address() const { return address_; }

  // Sets the status with which the next `calls` calls of Attend and Encode end; with OK they are
  // answered.
  void set_status(grpc::Status status, int calls = std::numeric_limits<int>::max());
  // Sets a hook that runs before every answer to Attend and Encode.
  void set_before_answer(std::function<void(grpc::ServerContext&)> hook);
  // Makes the answers to Attend contradict themselves.
  void set_unsound(bool unsound);
  void set_healthy(bool healthy);
  // Gives all models a classification head.
  void set_classes(int classes);
  // Gives all models vectors of tokens for late interaction.
  void set_multi_vector(bool multi_vector);
  // Gives all models a tokenizer that truncates on the left.
  void set_truncates_left(bool truncates_left);

  std::vector<v1::AttendRequest> attended() const;
  std::vector<v1::EncodeRequest> encoded() const;
  std::vector<v1::PutMemoryRequest> put() const;
  std::vector<v1::TokenizeRequest> tokenized() const;
  // The items in the order of their arrival.
  std::vector<v1::EncodeStreamRequest> streamed() const;

 private:
  grpc::Status Attend(grpc::ServerContext* context, const v1::AttendRequest* request,
                      v1::AttendResponse* response) override;
  grpc::Status Encode(grpc::ServerContext* context, const v1::EncodeRequest* request,
                      v1::EncodeResponse* response) override;
  grpc::Status PutMemory(grpc::ServerContext* context, const v1::PutMemoryRequest* request,
                         v1::PutMemoryResponse* response) override;
  grpc::Status DropMemory(grpc::ServerContext* context, const v1::DropMemoryRequest* request,
                          v1::DropMemoryResponse* response) override;
  grpc::Status EncodeStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::EncodeStreamResponse, v1::EncodeStreamRequest>* stream) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status GetTokenizer(grpc::ServerContext* context, const v1::GetTokenizerRequest* request,
                            v1::GetTokenizerResponse* response) override;
  grpc::Status Tokenize(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        v1::GetModelResponse* response) override;

  grpc::Status Ready(grpc::ServerContext& context);

  mutable absl::Mutex mutex_;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  int calls_to_fail_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void(grpc::ServerContext&)> before_answer_ ABSL_GUARDED_BY(mutex_);
  bool unsound_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::AttendRequest> attended_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::EncodeRequest> encoded_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::PutMemoryRequest> put_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::TokenizeRequest> tokenized_ ABSL_GUARDED_BY(mutex_);
  int classes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool multi_vector_ ABSL_GUARDED_BY(mutex_) = false;
  bool truncates_left_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::EncodeStreamRequest> streamed_ ABSL_GUARDED_BY(mutex_);
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Returns an address on which no server listens: its port was taken and released.
std::string DeadAddress();

}  // namespace attendant::client
