// A TCP connection that sends and receives bytes as they are, for tests of misbehaving callers.
#pragma once

#include <string>

namespace attendant {

class TcpClient {
 public:
  // Connects to a port. Both addresses may be any in 127.0.0.0/8.
  explicit TcpClient(int port, const std::string& from = "127.0.0.1",
                     const std::string& to = "127.0.0.1");
  ~TcpClient();
  TcpClient(TcpClient&& other) noexcept;
  TcpClient& operator=(TcpClient&& other) noexcept;

  bool connected() const { return connected_; }
  // Sends all bytes. Returns false if the other end has closed the connection before.
  bool Send(const std::string& bytes);
  // Returns everything that the other end sends until it closes the connection. Fails the test if
  // that takes a minute.
  std::string ReceiveAll();
  // Returns the next answer over HTTP, or what has come of it until the other end closes the
  // connection. `head_only`: it answers HEAD.
  std::string ReceiveAnswer(bool head_only = false);
  // Ends the direction to the other end.
  void EndSending();
  // Waits for at most this time until the other end has closed the connection or has sent
  // something, and returns whether it has.
  bool AwaitInput(int milliseconds);

 private:
  // Appends what comes next to `received_`. Returns false at the end of the connection.
  bool ReceiveMore();

  int descriptor_;
  bool connected_ = false;
  std::string received_;  // not returned yet
};

// Sends the request `bytes` over a new connection and returns what ReceiveAnswer does; nothing if
// no server listens on the port.
std::string Exchange(int port, const std::string& bytes);

}  // namespace attendant
