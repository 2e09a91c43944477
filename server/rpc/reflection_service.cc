#include "server/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/request_end.h"
#include "server/rpc/call/time_limit.h"

namespace attendant::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using Reactor = grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>;

void SetNotFound(ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message("the server has no such descriptor");
}

void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
              ServerReflectionResponse& response) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), added, response);
}

void AnswerFile(const FileDescriptor* file, ServerReflectionResponse& response) {
  if (file == nullptr) return SetNotFound(response);
  std::set<const FileDescriptor*> added;
  AddFiles(*file, added, response);
}

void AnswerExtension(const std::string& type_name, int number, ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* type = pool.FindMessageTypeByName(type_name);
  const FieldDescriptor* extension =
      type == nullptr ? nullptr : pool.FindExtensionByNumber(type, number);
  AnswerFile(extension == nullptr ? nullptr : extension->file(), response);
}

void AnswerExtensions(const std::string& type_name, ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* type = pool.FindMessageTypeByName(type_name);
  if (type == nullptr) return SetNotFound(response);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(type_name);
  for (const FieldDescriptor* extension : extensions) {
    answer.add_extension_number(extension->number());
  }
}

void Answer(const ServerReflectionRequest& request, const std::vector<std::string>& services,
            ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  response.Clear();
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      return AnswerFile(pool.FindFileByName(request.file_by_filename()), response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), response);
    case ServerReflectionRequest::kFileContainingExtension:
      return AnswerExtension(request.file_containing_extension().containing_type(),
                             request.file_containing_extension().extension_number(), response);
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      return AnswerExtensions(request.all_extension_numbers_of_type(), response);
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("the request asks for nothing");
  }
}

class RefusingReactor final : public Reactor {
 public:
  explicit RefusingReactor(grpc::CallbackServerContext& call) {
    // Tools open such a stream for a moment, so that a short wait is enough.
    call.AddTrailingMetadata(kReasonTrailer, Name(Refusal::kStreams));
    call.AddTrailingMetadata(kRetryPushbackTrailer, "100");
    Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many reflection streams are open"});
  }
  void OnDone() override { delete this; }
};

// One stream. It reads a request, writes the answer and so on. Owns itself until OnDone.
class StreamOfRequests final : public Reactor,
                               public std::enable_shared_from_this<StreamOfRequests> {
 public:
  StreamOfRequests(const std::vector<std::string>& services, std::atomic<int>& streams)
      : services_(services), streams_(streams) {}

  void Start(absl::Duration max_time) {
    {
      absl::MutexLock lock(&mutex_);
      self_ = shared_from_this();
    }
    const bool limited = time_limit_.Set(
        TimeLimit::In(max_time), weak_from_this(), [max_time](StreamOfRequests& self) {
          self.End(
              {grpc::StatusCode::DEADLINE_EXCEEDED,
               absl::StrCat("a reflection stream may last ", absl::FormatDuration(max_time))});
        });
    if (!limited) return End({grpc::StatusCode::RESOURCE_EXHAUSTED, "there is not enough memory"});
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    if (request_.ByteSizeLong() > ReflectionService::kMaxRequestBytes) {
      return End(
          {grpc::StatusCode::INVALID_ARGUMENT,
           absl::StrCat("a reflection request has at most ", ReflectionService::kMaxRequestBytes,
                        " bytes, got ", request_.ByteSizeLong())});
    }
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    Answer(request_, services_, response_);
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    absl::MutexLock lock(&mutex_);
    if (!ended_) StartRead(&request_);
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override {
    time_limit_.Reset();
    streams_.fetch_sub(1);
    std::shared_ptr<StreamOfRequests> self;
    absl::MutexLock lock(&mutex_);
    self = std::move(self_);
  }

 private:
  void End(const grpc::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    Finish(status);
  }

  const std::vector<std::string>& services_;
  std::atomic<int>& streams_;
  ServerReflectionRequest request_;
  ServerReflectionResponse response_;
  TimeLimit time_limit_;
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<StreamOfRequests> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ReflectionService::ReflectionService(std::vector<std::string> services, absl::Duration max_time)
    : services_(std::move(services)), max_time_(max_time) {}

Reactor* ReflectionService::ServerReflectionInfo(grpc::CallbackServerContext* call) {
  if (streams_.fetch_add(1) >= kMaxStreams) {
    streams_.fetch_sub(1);
    return new RefusingReactor(*call);
  }
  const auto stream = std::make_shared<StreamOfRequests>(services_, streams_);
  stream->Start(max_time_);
  return stream.get();
}

}  // namespace attendant::server
