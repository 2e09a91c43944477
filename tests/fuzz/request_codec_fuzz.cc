// Fuzzer that checks that the slice codec and the generated parser accept the same messages and
// read the same fields from them. The first byte chooses the message type and the size of the
// slices.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "attendant/v1/encoder_service.pb.h"
#include "tests/server/wire/agreement.h"
#include "tests/server/wire/random_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attendant;
  static const google::protobuf::LogSilencer silencer;
  static const google::protobuf::Message* const kTypes[] = {
      &v1::AttendRequest::default_instance(), &v1::EncodeRequest::default_instance(),
      &v1::EncodeStreamRequest::default_instance(), &v1::PutMemoryRequest::default_instance()};
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const grpc::ByteBuffer buffer = server::InSlicesOf(bytes, 1 + data[0] / std::size(kTypes));
  const std::string disagreement =
      server::FindDisagreement(*kTypes[data[0] % std::size(kTypes)], bytes, buffer);
  if (disagreement.empty()) return 0;
  std::fprintf(stderr, "%s\n", disagreement.c_str());
  std::abort();
}
