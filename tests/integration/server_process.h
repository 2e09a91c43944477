// ServerProcess, the real attendant-server as a child process.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "attendant/v1/encoder_service.grpc.pb.h"

namespace attendant::server {

// The destructor ends the child if it still runs. Not thread-safe. Waiting for a line or for the
// end fails the test after a minute and kills the child.
class ServerProcess {
 public:
  // Starts the server with these flags, and with no variables except PATH and `environment`
  // ("NAME=value"). If there is a `launcher`, such as {"prlimit", "--nofile=256"}, that command
  // starts it.
  explicit ServerProcess(const std::vector<std::string>& flags,
                         const std::vector<std::string>& environment = {},
                         const std::vector<std::string>& launcher = {});
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Returns the next line on standard error; nothing at its end.
  std::optional<std::string> ReadLine();
  // Reads lines up to one that contains `text`, and returns it. If there is none, fails the test
  // and returns an empty line.
  std::string AwaitLine(const std::string& text);
  pid_t pid() const { return pid_; }
  void Signal(int number);
  // The rest of standard error, and the exit code or 128 + the signal.
  struct End {
    std::vector<std::string> lines;
    int code = -1;
  };
  End AwaitEnd();
  // As AwaitEnd, while sending the signal again and again.
  End SignalUntilEnd(int number);

 private:
  bool FillBuffer();

  pid_t pid_ = -1;
  int stderr_ = -1;
  std::string buffer_;
};

// A server on free ports of 127.0.0.1 that is ready.
class ReadyServer {
 public:
  explicit ReadyServer(std::vector<std::string> flags = {},
                       const std::vector<std::string>& launcher = {});

  ServerProcess& process() { return process_; }
  const ServerProcess& process() const { return process_; }
  int port() const { return port_; }
  int http_port() const { return http_port_; }
  std::string address() const;
  // Returns a new connection, which accepts messages of any size.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::EncoderService::Stub> NewStub() const;
  // Returns the head and the body of the HTTP port's answer to GET `path`, with a bearer token
  // unless it is empty.
  std::string Get(const std::string& path, const std::string& token = "") const;
  // Expects that the metrics become such; an answer leaves before it is counted.
  template <typename Matcher>
  void ExpectMetrics(const Matcher& matcher) const {
    const absl::Time patience = absl::Now() + absl::Minutes(1);
    while (!testing::Value(Get("/metrics"), matcher) && absl::Now() < patience) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_THAT(Get("/metrics"), matcher);
  }

 private:
  std::string port_file_;
  ServerProcess process_;
  int port_ = 0;
  int http_port_ = 0;
};

// Returns the value of a metric without labels; fails the test if there is none.
int64_t Metric(const ReadyServer& server, const std::string& name);
// Asks until the metric has the value, since nothing signals it.
void AwaitMetric(const ReadyServer& server, const std::string& name, int64_t value);
// Returns the bytes of requests and answers that the server holds.
int64_t BytesHeld(const ReadyServer& server);

// Returns the number behind a name of /proc/PID/status, such as "Threads", or "VmHWM", the most
// resident memory that there has been, in KiB.
int64_t ProcessStatus(const ReadyServer& server, const std::string& name);

// Returns the answer of 127.0.0.1:`port` to GET `path`; empty if no server listens there.
std::string HttpGet(int port, const std::string& path, const std::string& token = "");

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
