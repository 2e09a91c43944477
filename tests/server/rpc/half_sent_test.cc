// Test of a body of which only the beginning arrives. The frames are written by hand, because no
// client library sends such a body.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "tests/server/support/test_server.h"

namespace attendant::server {
namespace {

using ::testing::HasSubstr;

// The frames of RFC 9113 that a call needs.
enum FrameType : uint8_t { kData = 0, kHeaders = 1, kSettings = 4 };
constexpr uint8_t kEndStream = 0x1;
constexpr uint8_t kEndHeaders = 0x4;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return BigEndian(static_cast<uint32_t>(payload.size()), 3) + BigEndian(type, 1) +
         BigEndian(flags, 1) + BigEndian(stream, 4) + payload;
}

// Returns a literal header field without indexing, with a new name (RFC 7541).
std::string Field(const std::string& name, const std::string& value) {
  return BigEndian(0, 1) + BigEndian(static_cast<uint32_t>(name.size()), 1) + name +
         BigEndian(static_cast<uint32_t>(value.size()), 1) + value;
}

class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawConnection() { close(socket_); }

  void Send(const std::string& bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Returns the header block that ends stream 1.
  std::string ReadTrailers() {
    while (true) {
      const std::string head = Receive(9);
      if (head.size() < 9) return "the connection was closed";
      const auto byte = [&](int i) { return static_cast<uint8_t>(head[i]); };
      const std::string payload = Receive(byte(0) << 16 | byte(1) << 8 | byte(2));
      if (byte(3) == kHeaders && (byte(4) & kEndStream)) return payload;
    }
  }

 private:
  std::string Receive(size_t bytes) {
    std::string text(bytes, '\0');
    const ssize_t got = recv(socket_, text.data(), bytes, MSG_WAITALL);
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }

  const int socket_;
};

// Calls the method with a message that announces 10,000 uncompressed bytes but has 100.
std::string TrailersOfHalfAMessage(const TestServer& server, const std::string& method) {
  RawConnection connection(server.port());
  connection.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, ""));
  connection.Send(Frame(kHeaders, kEndHeaders, 1,
                        Field(":method", "POST") + Field(":scheme", "http") +
                            Field(":path", "/attendant.v1.EncoderService/" + method) +
                            Field(":authority", "test") +
                            Field("content-type", "application/grpc") + Field("te", "trailers")));
  connection.Send(
      Frame(kData, 0, 1, BigEndian(0, 1) + BigEndian(10000, 4) + std::string(100, 'x')));
  return connection.ReadTrailers();
}

TEST(HalfSentTest, AnItemThatStopsEndsItsStream) {
  TestServerOptions options;
  options.limits.stream_idle_timeout = absl::Milliseconds(50);
  TestServer server(options);
  EXPECT_THAT(TrailersOfHalfAMessage(server, "EncodeStream"),
              HasSubstr("the stream's next item did not arrive within 50ms"));
  server.AwaitInflight(0);
}

TEST(HalfSentTest, ABodyThatStopsIsGivenUp) {
  TestServerOptions options;
  options.limits.receive_timeout = absl::Milliseconds(50);
  TestServer server(options);
  const std::string trailers = TrailersOfHalfAMessage(server, "Attend");
  EXPECT_THAT(trailers, HasSubstr("grpc-status"));
  EXPECT_THAT(trailers, HasSubstr("the request's body did not arrive within 50ms"));
  server.AwaitInflight(0);
  server.AwaitNothingReceiving();
  EXPECT_THAT(server.Scrape(), HasSubstr("code=\"DEADLINE_EXCEEDED\""));
}

}  // namespace
}  // namespace attendant::server
