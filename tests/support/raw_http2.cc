#include "tests/support/raw_http2.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "tests/support/http2_frames.h"

namespace attendant::server {
namespace {

using enum http2::FrameType;
using http2::FrameType;
using http2::kAck;
using http2::kEndHeaders;
using http2::kEndStream;

constexpr uint16_t kInitialWindowSize = 4;
constexpr size_t kHeadBytes = 9;
constexpr size_t kMostFrameBytes = 16384;
constexpr int kPatienceMilliseconds = 60'000;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

uint32_t FromBigEndian(const std::string& text, size_t begin, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(text[begin + i]);
  return value;
}

// Returns a literal header field without indexing, with a new name (RFC 7541).
std::string Field(const std::string& name, const std::string& value) {
  return BigEndian(0, 1) + BigEndian(static_cast<uint32_t>(name.size()), 1) + name +
         BigEndian(static_cast<uint32_t>(value.size()), 1) + value;
}

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

int Connect(int port, const std::string& source) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in from = AddressOf(source, 0), to = AddressOf("127.0.0.1", port);
  EXPECT_EQ(bind(connection, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
  EXPECT_EQ(connect(connection, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return connection;
}

int ConnectUnix(const std::string& path) {
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  EXPECT_EQ(connect(connection, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return connection;
}

}  // namespace

RawHttp2::RawHttp2(int port, const RawHttp2Options& options)
    : socket_(options.unix_path.empty() ? Connect(port, options.source)
                                        : ConnectUnix(options.unix_path)) {
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  EXPECT_EQ(send(socket_, preface.data(), preface.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(preface.size()));
  SendFrame(kSettings, 0, 0,
            BigEndian(kInitialWindowSize, 2) + BigEndian(options.initial_window, 4));
}

RawHttp2::~RawHttp2() { close(socket_); }

uint32_t RawHttp2::StartCall(const std::string& method,
                             const std::map<std::string, std::string>& metadata) {
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  calls_[stream].window = initial_window_;
  std::string fields = Field(":method", "POST") + Field(":scheme", "http") +
                       Field(":path", method) + Field(":authority", "test") +
                       Field("content-type", "application/grpc") + Field("te", "trailers");
  for (const auto& [name, value] : metadata) fields += Field(name, value);
  SendFrame(kHeaders, kEndHeaders, stream, fields);
  return stream;
}

void RawHttp2::SendMessage(uint32_t stream, uint32_t announced, const std::string& body) {
  SendData(stream, BigEndian(0, 1) + BigEndian(announced, 4) + body);
}

void RawHttp2::HalfClose(uint32_t stream) { SendFrame(kData, kEndStream, stream, ""); }

void RawHttp2::Reset(uint32_t stream) {
  constexpr uint32_t kCancel = 8;
  SendFrame(kReset, 0, stream, BigEndian(kCancel, 4));
}

void RawHttp2::SendData(uint32_t stream, const std::string& bytes) {
  Call& call = calls_[stream];
  for (size_t sent = 0; sent < bytes.size() && !closed_ && !call.end;) {
    while (ReadFrame(0)) {
    }
    const int64_t room =
        std::min({call.window, server_window_, static_cast<int64_t>(kMostFrameBytes)});
    if (room <= 0) {
      if (!ReadFrame(kPatienceMilliseconds) && !closed_) {
        ADD_FAILURE() << "the server gives no window";
        return;
      }
      continue;
    }
    const std::string chunk = bytes.substr(sent, static_cast<size_t>(room));
    SendFrame(kData, 0, stream, chunk);
    sent += chunk.size();
    call.window -= static_cast<int64_t>(chunk.size());
    server_window_ -= static_cast<int64_t>(chunk.size());
  }
}

void RawHttp2::SendFrame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  const std::string frame = BigEndian(static_cast<uint32_t>(payload.size()), 3) +
                            BigEndian(type, 1) + BigEndian(flags, 1) + BigEndian(stream, 4) +
                            payload;
  for (size_t sent = 0; sent < frame.size() && !closed_;) {
    const ssize_t more = send(socket_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) closed_ = true;
    sent += static_cast<size_t>(std::max<ssize_t>(more, 0));
  }
}

std::string RawHttp2::AwaitEnd(uint32_t stream) {
  // Keepalive pings must not prolong the wait.
  const auto patience =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMilliseconds);
  while (!calls_[stream].end) {
    if (ReadFrame(kPatienceMilliseconds) && std::chrono::steady_clock::now() < patience) continue;
    if (!closed_) ADD_FAILURE() << "the call does not end";
    return "closed";
  }
  return *calls_[stream].end;
}

bool RawHttp2::HasEnded(uint32_t stream) {
  while (ReadFrame(0)) {
  }
  return closed_ || calls_[stream].end.has_value();
}

bool RawHttp2::AwaitGoAway() {
  while (!going_away_ && ReadFrame(kPatienceMilliseconds)) {
  }
  return going_away_;
}

bool RawHttp2::ReadFrame(int milliseconds) {
  if (!Fill(kHeadBytes, milliseconds)) return false;
  const size_t length = FromBigEndian(received_, 0, 3);
  if (!Fill(kHeadBytes + length, kPatienceMilliseconds)) return false;
  const auto type = static_cast<FrameType>(received_[3]);
  const auto flags = static_cast<uint8_t>(received_[4]);
  const uint32_t stream = FromBigEndian(received_, 5, 4);
  const std::string payload = received_.substr(kHeadBytes, length);
  received_.erase(0, kHeadBytes + length);
  if (type == kHeaders && (flags & kEndStream)) calls_[stream].end = payload;
  if (type == kReset && !calls_[stream].end) calls_[stream].end = "reset";
  if (type == kPing && !(flags & kAck)) SendFrame(kPing, kAck, 0, payload);
  if (type == kGoAway) going_away_ = true;
  if (type == kWindowUpdate) {
    (stream == 0 ? server_window_ : calls_[stream].window) += FromBigEndian(payload, 0, 4);
  }
  if (type != kSettings || (flags & kAck)) return true;
  for (size_t i = 0; i + 6 <= payload.size(); i += 6) {
    if (FromBigEndian(payload, i, 2) != kInitialWindowSize) continue;
    const int64_t window = FromBigEndian(payload, i + 2, 4);
    for (auto& [number, call] : calls_) call.window += window - initial_window_;
    initial_window_ = window;
  }
  SendFrame(kSettings, kAck, 0, "");
  return true;
}

bool RawHttp2::Fill(size_t bytes, int milliseconds) {
  while (received_.size() < bytes) {
    pollfd readable = {socket_, POLLIN, 0};
    if (closed_ || poll(&readable, 1, milliseconds) <= 0) return false;
    char chunk[16384];
    const ssize_t got = recv(socket_, chunk, sizeof chunk, 0);
    if (got <= 0) {
      closed_ = true;
      return false;
    }
    received_.append(chunk, static_cast<size_t>(got));
  }
  return true;
}

}  // namespace attendant::server
