// The real attendant-server as a child process.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attendant/v1/encoder_service.grpc.pb.h"

namespace attendant::server {

// Ends the child if it still runs. Not thread-safe. Waiting for a line or for the end gives up
// after a minute, with a test failure, and kills the child.
class ServerProcess {
 public:
  // Starts the server with these flags and, beside PATH, no variables but `environment`
  // ("NAME=value").
  explicit ServerProcess(const std::vector<std::string>& flags,
                         const std::vector<std::string>& environment = {});
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // The next line on standard error; nothing at its end.
  std::optional<std::string> ReadLine();
  // Reads lines up to one that contains `text`, and returns it; empty, with a failure, if none
  // does.
  std::string AwaitLine(const std::string& text);
  void Signal(int number);
  // Reads to the end of standard error. Its lines, and the exit code or 128 + the signal.
  struct End {
    std::vector<std::string> lines;
    int code = -1;
  };
  End AwaitEnd();
  // The same, sending the signal again and again meanwhile.
  End SignalUntilEnd(int number);

 private:
  bool FillBuffer();

  pid_t pid_ = -1;
  int stderr_ = -1;
  std::string buffer_;
};

// A server on free ports of 127.0.0.1, ready.
class ReadyServer {
 public:
  explicit ReadyServer(std::vector<std::string> flags = {});

  ServerProcess& process() { return process_; }
  int port() const { return port_; }
  int http_port() const { return http_port_; }
  std::string address() const;
  // A connection of its own.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::EncoderService::Stub> NewStub() const;
  // Head and body of the answer to GET `path` of the HTTP port.
  std::string Get(const std::string& path) const;

 private:
  std::string port_file_;
  ServerProcess process_;
  int port_ = 0;
  int http_port_ = 0;
};

// What 127.0.0.1:`port` answers to GET `path`; empty if nobody listens.
std::string HttpGet(int port, const std::string& path);

// A TCP port of 127.0.0.1 that this process listens on.
class TakenPort {
 public:
  TakenPort();
  ~TakenPort();
  int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

}  // namespace attendant::server
