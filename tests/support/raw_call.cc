#include "tests/support/raw_call.h"

#include <google/protobuf/unknown_field_set.h>

#include <chrono>

#include "gtest/gtest.h"

namespace attendant::server {
namespace {

using google::protobuf::UnknownFieldSet;

int tag;  // serves every operation, as there is one at a time
void* const kTag = &tag;

}  // namespace

RawCall::RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
    : stub_(channel) {
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  call_ = stub_.PrepareCall(&context_, method, &queue_);
  call_->StartCall(kTag);
  Await();
}

RawCall::~RawCall() {
  if (!finished_) {
    context_.TryCancel();
    Finish();
  }
  queue_.Shutdown();
  void* ignored;
  for (bool ok; queue_.Next(&ignored, &ok);) {
  }
}

bool RawCall::Write(const std::string& message) {
  const grpc::Slice slice(message);
  call_->Write(grpc::ByteBuffer(&slice, 1), kTag);
  return Await();
}

bool RawCall::WritesDone() {
  call_->WritesDone(kTag);
  return Await();
}

std::optional<std::string> RawCall::Read() {
  grpc::ByteBuffer buffer;
  call_->Read(&buffer, kTag);
  if (!Await()) return std::nullopt;
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string message;
  for (const grpc::Slice& slice : slices) {
    message.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return message;
}

bool RawCall::Read(google::protobuf::Message* message) {
  const std::optional<std::string> bytes = Read();
  return bytes && message->ParseFromString(*bytes);
}

grpc::Status RawCall::Finish() {
  grpc::Status status;
  call_->Finish(&status, kTag);
  Await();
  finished_ = true;
  return status;
}

std::string RawCall::Trailer(const std::string& key) const { return TrailerOf(context_, key); }

bool RawCall::Await() {
  void* done;
  bool ok = false;
  EXPECT_TRUE(queue_.Next(&done, &ok));
  return ok;
}

std::string TrailerOf(const grpc::ClientContext& context, const std::string& key) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(key);
  if (found == trailers.end()) return "none";
  return {found->second.data(), found->second.size()};
}

std::string TextField(int number, const std::string& text) {
  UnknownFieldSet fields;
  fields.AddLengthDelimited(number, text);
  std::string message;
  fields.SerializeToString(&message);
  return message;
}

std::vector<std::string> Texts(const std::string& message, int number) {
  UnknownFieldSet fields;
  EXPECT_TRUE(fields.ParseFromString(message));
  std::vector<std::string> texts;
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() == number) texts.push_back(fields.field(i).length_delimited());
  }
  return texts;
}

uint64_t Number(const std::string& message, int number) {
  UnknownFieldSet fields;
  EXPECT_TRUE(fields.ParseFromString(message));
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() == number) return fields.field(i).varint();
  }
  return 0;
}

}  // namespace attendant::server
