#include "client/grpc_encode_stream.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "client/proto_conversion.h"

namespace attendant::client {
namespace {

class GrpcEncodeStream : public EncodeStream {
 public:
  GrpcEncodeStream(v1::EncoderService::Stub& stub, std::unique_ptr<grpc::ClientContext> context)
      : context_(std::move(context)), stream_(stub.EncodeStream(context_.get())) {}

  ~GrpcEncodeStream() override {
    if (finished_) return;
    context_->TryCancel();
    stream_->Finish();
  }

  bool Write(uint64_t id, EncodeRequest request, const SequencePart& part) override {
    v1::EncodeStreamRequest item;
    item.set_id(id);
    *item.mutable_request() = ToProto(std::move(request));
    item.set_sequence(part.sequence);
    if (part.first_token) item.set_first_token(*part.first_token);
    item.set_ends(part.ends);
    return stream_->Write(item);
  }

  void WritesDone() override { stream_->WritesDone(); }

  std::optional<Answer> Read() override {
    v1::EncodeStreamResponse item;
    if (!stream_->Read(&item)) return std::nullopt;
    if (item.has_error()) return Answer{item.id(), FromProto(item.error())};
    return Answer{item.id(), FromProto(std::move(*item.mutable_response()))};
  }

  absl::Status Finish() override {
    finished_ = true;
    return FromGrpc(stream_->Finish());
  }

 private:
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::EncodeStreamRequest, v1::EncodeStreamResponse>>
      stream_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<EncodeStream> MakeEncodeStream(v1::EncoderService::Stub& stub,
                                               std::unique_ptr<grpc::ClientContext> context) {
  return std::make_unique<GrpcEncodeStream>(stub, std::move(context));
}

}  // namespace attendant::client
