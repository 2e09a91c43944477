// HttpConnection, one kept connection to a server on this machine, for http_load.
#pragma once

#include <optional>
#include <string>

// Not thread-safe. Throws std::system_error if it cannot connect.
class HttpConnection {
 public:
  explicit HttpConnection(int port) : port_(port) { Connect(); }
  ~HttpConnection() { Disconnect(); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int descriptor() const { return descriptor_; }  // which Connect changes
  // Whether the server has ended the connection, or will: Connect before the next Send.
  bool ended() const { return ended_; }
  void Connect();

  // Sends a whole request, head and body. The response to the one before has been read.
  void Send(const std::string& request);
  // Reads what has come, without waiting. Returns nothing while the response is incomplete; then
  // why it is not a good one, which is empty if it is.
  std::optional<std::string> Read();

 private:
  void Disconnect();
  std::optional<std::string> ReadHead();  // as Read, once the head is complete

  const int port_;
  int descriptor_ = -1;
  bool ended_ = false;
  std::string received_;  // of the response
  size_t head_ = 0;       // bytes of its head; 0: not complete
  size_t size_ = 0;       // bytes of its head and body
};
