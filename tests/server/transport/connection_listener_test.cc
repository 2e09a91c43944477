#include "server/transport/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transport/grpc_traffic.h"

namespace attendant::server {
namespace connection_listener_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A listener whose connections the test owns, as gRPC does in the server.
class Door {
 public:
  explicit Door(const ConnectionLimits& limits, const std::string& address = "127.0.0.1") {
    auto bound = ConnectionListener::Bind(address, 0, limits);
    EXPECT_TRUE(bound.ok()) << bound.status();
    listener_ = *std::move(bound);
  }
  ~Door() {
    listener_.reset();
    for (const int connection : taken_) close(connection);
  }

  void Start() {
    const auto take = [this](int, int connection) {
      absl::MutexLock lock(&mutex_);
      taken_.push_back(connection);
    };
    const auto on_refused = [this](ConnectionRefusal refusal) {
      absl::MutexLock lock(&mutex_);
      refused_.push_back(ConnectionRefusalName(refusal));
    };
    EXPECT_TRUE(listener_->Start(take, on_refused).ok());
  }

  ConnectionListener& listener() { return *listener_; }

  // Each waits until there are `count` of them, and returns them.
  std::vector<int> AwaitTaken(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto enough = [&] {
      mutex_.AssertReaderHeld();
      return taken_.size() >= count;
    };
    mutex_.Await(absl::Condition(&enough));
    return taken_;
  }
  std::vector<std::string> AwaitRefused(size_t count) {
    absl::MutexLock lock(&mutex_);
    auto enough = [&] {
      mutex_.AssertReaderHeld();
      return refused_.size() >= count;
    };
    mutex_.Await(absl::Condition(&enough));
    return refused_;
  }

  // Polls, since nothing signals it.
  void AwaitOpen(int64_t count) {
    while (listener_->connections().count() != count) absl::SleepFor(absl::Milliseconds(1));
  }

  size_t taken() {
    absl::MutexLock lock(&mutex_);
    return taken_.size();
  }

  // Reads a connection to its end as gRPC does.
  static void ReadToEnd(int connection) {
    pollfd readable = {connection, POLLIN, 0};
    char bytes[4096];
    iovec part = {bytes, sizeof bytes};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    do {
      poll(&readable, 1, -1);
    } while (recvmsg(connection, &message, MSG_DONTWAIT) > 0);
  }
  // Ends a connection as gRPC does.
  static void End(int connection) { shutdown(connection, SHUT_RDWR); }

 private:
  std::unique_ptr<ConnectionListener> listener_;
  absl::Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> refused_ ABSL_GUARDED_BY(mutex_);
};

class Caller {
 public:
  explicit Caller(int domain = AF_INET) : socket_(socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  Caller(const ConnectionListener& listener, const char* from = "127.0.0.1") : Caller() {
    EXPECT_TRUE(Connect(listener, from));
  }
  Caller(Caller&& other) : socket_(std::exchange(other.socket_, -1)) {}
  ~Caller() { Close(); }

  bool Connect(const ConnectionListener& listener, const char* from = "127.0.0.1") {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons(static_cast<uint16_t>(listener.port()));
    return connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  void ConnectUnix(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  // Reads until the other end closes; returns the number of bytes.
  size_t ReadToEnd() {
    char bytes[4096];
    size_t size = 0;
    for (ssize_t got; (got = recv(socket_, bytes, sizeof bytes, 0)) > 0;) {
      size += static_cast<size_t>(got);
    }
    return size;
  }
  void Reset() {
    const linger at_once = {1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    Close();
  }
  void Close() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  int descriptor() const { return socket_; }
  void Send(const std::string& bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  // As the listener names the connection.
  std::string name() const {
    sockaddr_in own = {};
    socklen_t size = sizeof own;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &own.sin_addr, address, sizeof address);
    return absl::StrCat(address, " port ", ntohs(own.sin_port));
  }

 private:
  int socket_;
};

TEST(ConnectionListenerTest, RefusesBeforeItStarts) {
  Door door({});
  Caller caller;
  EXPECT_FALSE(caller.Connect(door.listener()));
}

TEST(ConnectionListenerTest, CountsUntilTheOwnerEndsTheConnection) {
  Door door({});
  door.Start();
  Caller first(door.listener()), second(door.listener());
  const std::vector<int> taken = door.AwaitTaken(2);
  EXPECT_EQ(door.listener().connections().count(), 2);
  Door::End(taken[0]);
  door.AwaitOpen(1);
  Door::End(taken[1]);
  door.AwaitOpen(0);
  EXPECT_EQ(first.ReadToEnd(), 0u);  // the duplicate does not hold it open
  EXPECT_EQ(second.ReadToEnd(), 0u);
}

TEST(ConnectionListenerTest, CountsUntilTheCallerResetsTheConnection) {
  Door door({});
  door.Start();
  Caller caller(door.listener());
  door.AwaitTaken(1);
  caller.Reset();
  door.AwaitOpen(0);
}

TEST(ConnectionListenerTest, ACallerThatOnlyStopsSendingIsStillCounted) {
  Door door({.total = 1});
  door.Start();
  Caller caller(door.listener());
  const int taken = door.AwaitTaken(1)[0];
  shutdown(caller.descriptor(), SHUT_WR);
  Caller refused(door.listener());
  EXPECT_THAT(door.AwaitRefused(1), ElementsAre("total"));
  Door::End(taken);
  door.AwaitOpen(0);
}

TEST(ConnectionListenerTest, BoundsTheTotalExactly) {
  Door door({.total = 3});
  door.Start();
  std::vector<Caller> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back(door.listener());
  const std::vector<int> taken = door.AwaitTaken(3);
  Caller refused(door.listener());
  EXPECT_EQ(refused.ReadToEnd(), 0u);
  EXPECT_THAT(door.AwaitRefused(1), ElementsAre("total"));
  Door::End(taken[1]);
  door.AwaitOpen(2);
  Caller again(door.listener());
  EXPECT_EQ(door.AwaitTaken(4).size(), 4u);
}

TEST(ConnectionListenerTest, BoundsEachAddressExactly) {
  Door door({.total = 10, .per_address = 2});
  door.Start();
  Caller first(door.listener(), "127.0.0.2"), second(door.listener(), "127.0.0.2");
  const std::vector<int> taken = door.AwaitTaken(2);
  Caller third(door.listener(), "127.0.0.2");
  EXPECT_EQ(third.ReadToEnd(), 0u);
  EXPECT_THAT(door.AwaitRefused(1), ElementsAre("address"));
  Caller neighbour(door.listener(), "127.0.0.3");
  door.AwaitTaken(3);
  Door::End(taken[0]);
  door.AwaitOpen(2);
  Caller fourth(door.listener(), "127.0.0.2");
  door.AwaitTaken(4);
  EXPECT_EQ(door.AwaitRefused(1).size(), 1u);
}

TEST(ConnectionListenerTest, CallersOfAUnixSocketHaveNoAddress) {
  const std::string address = absl::StrCat("unix:", testing::TempDir(), "door_", getpid());
  Door door({.total = 3, .per_address = 1}, address);
  EXPECT_EQ(door.listener().name(), address);
  door.Start();
  std::vector<Caller> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back(AF_UNIX).ConnectUnix(std::string(absl::StripPrefix(address, "unix:")));
  }
  door.AwaitTaken(3);
  EXPECT_THAT(door.AwaitRefused(1), ElementsAre("total"));
  callers[0].Close();
  door.AwaitOpen(2);
}

TEST(ConnectionListenerTest, ClosingLeavesConnectionsOpen) {
  Door door({});
  door.Start();
  Caller caller(door.listener());
  const int taken = door.AwaitTaken(1)[0];
  door.listener().Close();
  Caller late;
  EXPECT_FALSE(late.Connect(door.listener()));
  EXPECT_EQ(send(taken, "x", 1, MSG_NOSIGNAL), 1);
  Door::End(taken);
  EXPECT_EQ(caller.ReadToEnd(), 1u);
  door.AwaitOpen(0);
}

TEST(ConnectionListenerTest, WaitsUntilEverythingHasBeenReceived) {
  Door door({});
  door.Start();
  Caller caller;
  const int small = 4096;
  setsockopt(caller.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  ASSERT_TRUE(caller.Connect(door.listener()));
  const int taken = door.AwaitTaken(1)[0];
  EXPECT_EQ(door.listener().connections().AwaitSent(absl::InfiniteFuture()), 0);
  const std::string answer(100'000, 'x');
  const ssize_t sent = send(taken, answer.data(), answer.size(), MSG_NOSIGNAL);
  ASSERT_GT(sent, 20'000);
  EXPECT_EQ(door.listener().connections().AwaitSent(absl::InfinitePast()), 1);
  std::string received(static_cast<size_t>(sent), ' ');
  EXPECT_EQ(recv(caller.descriptor(), received.data(), received.size(), MSG_WAITALL), sent);
  EXPECT_EQ(door.listener().connections().AwaitSent(absl::InfiniteFuture()), 0);
}

TEST(ConnectionListenerTest, EndingToReadWaitsUntilTheOwnersClose) {
  Door door({});
  door.Start();
  EXPECT_EQ(door.listener().connections().EndReading(absl::InfiniteFuture()), 0);
  Caller caller(door.listener());
  const int taken = door.AwaitTaken(1)[0];
  EXPECT_EQ(door.listener().connections().EndReading(absl::InfinitePast()), 1);
  char byte;
  EXPECT_EQ(recv(taken, &byte, 1, 0), 0);  // as if the caller had closed
  EXPECT_EQ(send(taken, "x", 1, MSG_NOSIGNAL), 1);
  Door::End(taken);
  EXPECT_EQ(door.listener().connections().EndReading(absl::InfiniteFuture()), 0);
  EXPECT_EQ(caller.ReadToEnd(), 1u);
}

// Takes all descriptors of the process that are left below a limit.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low = {128, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int taken; (taken = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
      taken_.push_back(taken);
    }
  }
  ~NoDescriptorsLeft() {
    for (const int taken : taken_) close(taken);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_;
  std::vector<int> taken_;
};

TEST(ConnectionListenerTest, SurvivesThatThereAreNoDescriptors) {
  Door door({});
  door.Start();
  std::vector<Caller> callers(5);
  {
    const NoDescriptorsLeft none;
    for (Caller& caller : callers) EXPECT_TRUE(caller.Connect(door.listener()));
    door.AwaitRefused(5);
    for (Caller& caller : callers) EXPECT_EQ(caller.ReadToEnd(), 0u);
  }
  EXPECT_THAT(door.AwaitRefused(5), testing::Each("descriptors"));
  Caller caller(door.listener());
  door.AwaitTaken(1);
}

TEST(ConnectionListenerTest, ConnectionsAreMeteredUntilTheyEnd) {
  Door door({});
  door.Start();
  Caller caller(door.listener());
  const int connection = door.AwaitTaken(1)[0];
  const auto metered = FindConnection(caller.name());
  EXPECT_EQ(FindConnection(caller.name()), metered);
  Door::End(connection);
  while (FindConnection(caller.name()) == metered) absl::SleepFor(absl::Milliseconds(1));
}

TEST(ConnectionListenerTest, ThePlaceOfAConnectionThatWasCutStaysTakenForAWhile) {
  Door door({.total = 10, .per_address = 1, .cut_place = absl::Milliseconds(300)});
  door.Start();
  Caller caller(door.listener());
  const std::string ping("\0\0\0\x06\0\0\0\0\0", 9);
  caller.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  for (int i = 0; i < 300; ++i) caller.Send(ping);
  Door::ReadToEnd(door.AwaitTaken(1)[0]);
  EXPECT_THAT(door.AwaitRefused(1), ElementsAre("frames"));
  Caller early(door.listener());
  EXPECT_THAT(door.AwaitRefused(2), ElementsAre("frames", "address"));
  Caller of_another(door.listener(), "127.0.0.2");
  door.AwaitTaken(2);
  while (door.taken() < 3) Caller late(door.listener());
}

TEST(ConnectionListenerTest, SaysWhereItCannotListen) {
  Door door({});
  door.Start();
  const int port = door.listener().port();
  EXPECT_EQ(door.listener().name(), absl::StrCat("127.0.0.1 port ", port));
  const auto second = ConnectionListener::Bind("127.0.0.1", port, {});
  EXPECT_EQ(second.status().message(), absl::StrCat("cannot listen on 127.0.0.1 port ", port,
                                                    " for gRPC: Address already in use"));
  EXPECT_THAT(ConnectionListener::Bind("unix:/nowhere/s", 0, {}).status().message(),
              HasSubstr("cannot listen on unix:/nowhere/s for gRPC: No such file"));
}

TEST(DescriptorLimitTest, IsRaisedToTheHardLimit) {
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit low = {64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(static_cast<rlim_t>(RaiseDescriptorLimit()), before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(DescriptorLimitTest, ConnectionsTakeLessThanHalfOfIt) {
  EXPECT_EQ(MostConnections(4096), 1024);
  EXPECT_EQ(MostConnections(64), 16);
  EXPECT_EQ(MostConnections(2), 1);
}

}  // namespace connection_listener_test
}  // namespace attendant::server
