#include "tests/integration/raw_call.h"

#include <google/protobuf/unknown_field_set.h>

#include <chrono>

#include "gtest/gtest.h"

namespace attendant::server {
namespace {

using google::protobuf::UnknownFieldSet;

int tag;  // of every operation: there is one at a time
void* const kTag = &tag;

}  // namespace

RawCall::RawCall(const std::string& address, const std::string& method)
    : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {
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

void RawCall::Write(const std::string& message) {
  const grpc::Slice slice(message);
  call_->Write(grpc::ByteBuffer(&slice, 1), kTag);
  Await();
}

void RawCall::WritesDone() {
  call_->WritesDone(kTag);
  Await();
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

grpc::Status RawCall::Finish() {
  grpc::Status status;
  call_->Finish(&status, kTag);
  Await();
  finished_ = true;
  return status;
}

bool RawCall::Await() {
  void* done;
  bool ok = false;
  EXPECT_TRUE(queue_.Next(&done, &ok));
  return ok;
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
