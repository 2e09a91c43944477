#include "server/wire/payload.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/server/wire/random_wire.h"

namespace attendant::server {
namespace payload_test {

std::shared_ptr<const MessageSlices> Dump(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<MessageSlices>();
  EXPECT_TRUE(buffer.Dump(slices.get()).ok());
  return slices;
}

TEST(PayloadTest, DefaultIsEmpty) {
  const Payload payload;
  EXPECT_EQ(payload.size(), 0);
  payload.CopyTo(0, 0, nullptr);
}

TEST(PayloadTest, CopiesAnyRangeOutOfAnySlices) {
  const std::string message = "The quick brown fox jumps over the lazy dog";
  RandomWire random(1);
  for (int i = 0; i < 2000; ++i) {
    const int offset = random.Below(static_cast<int>(message.size()) + 1);
    const int size = random.Below(static_cast<int>(message.size()) - offset + 1);
    const Payload payload(Dump(random.Slices(message)), offset, size);
    ASSERT_EQ(payload.size(), size);
    const int from = random.Below(size + 1);
    std::string copy(static_cast<size_t>(random.Below(size - from + 1)), '\0');
    payload.CopyTo(from, static_cast<int64_t>(copy.size()), copy.data());
    ASSERT_EQ(copy, message.substr(static_cast<size_t>(offset + from), copy.size()));
  }
}

TEST(PayloadTest, KeepsTheMessage) {
  auto slices = Dump(InSlicesOf(std::string(100, 'x'), 30));
  const Payload payload(std::move(slices), 10, 80);
  std::string copy(80, '\0');
  payload.CopyTo(0, 80, copy.data());
  EXPECT_EQ(copy, std::string(80, 'x'));
}

}  // namespace payload_test
}  // namespace attendant::server
