// RawHttp2, a connection whose HTTP/2 frames a test writes by hand, to send what no client library
// sends: half of a message, or calls whose answers it gives no window.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace attendant::server {

struct RawHttp2Options {
  std::string source = "127.0.0.1";  // address to connect from
  std::string unix_path = {};        // of a Unix socket to connect to instead
  uint32_t initial_window = 65535;   // that each answer gets
};

// One connection, to 127.0.0.1 unless the options say otherwise. Not thread-safe. What a call sends
// waits for the server's windows. Any wait ends after a minute, and fails the test.
class RawHttp2 {
 public:
  RawHttp2(int port, const RawHttp2Options& options = {});
  ~RawHttp2();
  RawHttp2(const RawHttp2&) = delete;
  RawHttp2& operator=(const RawHttp2&) = delete;

  // Sends the headers of a call of "/package.Service/Method", and returns its stream.
  uint32_t StartCall(const std::string& method,
                     const std::map<std::string, std::string>& metadata = {});
  // Sends the prefix of a message that announces `announced` bytes, and `body` behind it.
  void SendMessage(uint32_t stream, uint32_t announced, const std::string& body);
  // Sends more of the message.
  void SendData(uint32_t stream, const std::string& bytes);
  void HalfClose(uint32_t stream);
  // Tells the server that nobody waits for the call any more.
  void Reset(uint32_t stream);
  void SendFrame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload);

  // Waits for the end of a stream. Its header block (names and values are in it as plain text), or
  // "reset" if the server has reset the stream, or "closed" if the connection was closed.
  std::string AwaitEnd(uint32_t stream);
  // Whether the stream has ended as far as the frames that have arrived say.
  bool HasEnded(uint32_t stream);
  // Waits until the server asks to end the connection, and returns whether it does.
  bool AwaitGoAway();

 private:
  struct Call {
    int64_t window = 0;
    std::optional<std::string> end;
  };

  // Handles one frame; false if none has arrived within the time, or the connection was closed.
  bool ReadFrame(int milliseconds);
  bool Fill(size_t bytes, int milliseconds);

  const int socket_;
  bool closed_ = false;
  bool going_away_ = false;
  std::string received_;
  uint32_t next_stream_ = 1;
  int64_t server_window_ = 65535;   // of the connection
  int64_t initial_window_ = 65535;  // of a stream
  std::map<uint32_t, Call> calls_;
};

}  // namespace attendant::server
