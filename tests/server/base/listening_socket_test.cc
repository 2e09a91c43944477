#include "server/base/listening_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace listening_socket_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A path in a folder of its own, which goes with it.
class SocketPath {
 public:
  SocketPath() {
    std::string folder = testing::TempDir() + "attendant_XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~SocketPath() { fs::remove_all(folder_); }

  std::string path() const { return folder_ + "/s"; }
  std::string address() const { return "unix:" + path(); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_))
      names.push_back(file.path().filename());
    return names;
  }

 private:
  std::string folder_;
};

std::unique_ptr<ListeningSocket> Bind(const std::string& address) {
  auto sockets = ListeningSocket::Bind(address, 0);
  EXPECT_TRUE(sockets.ok()) << sockets.status();
  return std::move(sockets->front());
}

std::unique_ptr<ListeningSocket> Listen(const std::string& address) {
  std::unique_ptr<ListeningSocket> socket = Bind(address);
  EXPECT_TRUE(socket->Listen().ok());
  return socket;
}

std::string Error(const std::string& address, int port = 0) {
  const auto sockets = ListeningSocket::Bind(address, port);
  EXPECT_EQ(sockets.status().code(), absl::StatusCode::kUnavailable);
  return std::string(sockets.status().message());
}

// Leaves the file of a socket that nobody listens on.
void LeaveStaleSocket(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(socket, 1), 0);
  close(socket);
}

TEST(ListeningSocketTest, PicksAFreePortForBothVersions) {
  for (const char* address : {"127.0.0.1", "::1", "::"}) {
    EXPECT_GT(Listen(address)->port(), 0) << address;
  }
}

TEST(ListeningSocketTest, ATakenPortIsFoundBeforeListening) {
  const auto first = Listen("127.0.0.1");
  EXPECT_EQ(Error("127.0.0.1", first->port()), "Address already in use");
}

TEST(ListeningSocketTest, AnAddressThatIsNone) {
  EXPECT_THAT(Error("no address"), HasSubstr("not known"));
}

TEST(ListeningSocketTest, TheFileAppearsWhenTheSocketListens) {
  const SocketPath place;
  const auto socket = Bind(place.address());
  EXPECT_FALSE(fs::exists(place.path()));
  ASSERT_TRUE(socket->Listen().ok());
  EXPECT_THAT(place.files(), testing::ElementsAre("s"));
  struct stat file;
  ASSERT_EQ(lstat(place.path().c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 07777, 0660u);
}

TEST(ListeningSocketTest, TheFileGoesWithTheSocket) {
  const SocketPath place;
  Bind(place.address()).reset();
  EXPECT_TRUE(place.files().empty());
  Listen(place.address()).reset();
  EXPECT_TRUE(place.files().empty());
}

TEST(ListeningSocketTest, AStaleFileIsReplaced) {
  const SocketPath place;
  LeaveStaleSocket(place.path());
  LeaveStaleSocket(place.path() + ".new");
  const auto socket = Listen(place.address());
  EXPECT_EQ(Error(place.address()), "Address already in use");  // so callers reach it
}

TEST(ListeningSocketTest, ALiveSocketIsRefused) {
  const SocketPath place;
  const auto starting_too = Bind(place.address());
  {
    const auto first = Listen("unix:" + place.path() + "2");
    EXPECT_EQ(Error("unix:" + place.path() + "2"), "Address already in use");
  }
  const auto other = starting_too->Listen();
  EXPECT_TRUE(other.ok());
  EXPECT_EQ(Error(place.address()), "Address already in use");
}

TEST(ListeningSocketTest, AnotherFileIsRefusedAndKept) {
  const SocketPath place;
  std::ofstream(place.path()) << "precious";
  EXPECT_EQ(Error(place.address()), "the path exists and is not a socket");
  EXPECT_EQ(fs::file_size(place.path()), 8u);
}

TEST(ListeningSocketTest, TheFileOfASuccessorIsKept) {
  const SocketPath place;
  auto first = Listen(place.address());
  fs::remove(place.path());
  const auto second = Listen(place.address());
  first.reset();
  EXPECT_TRUE(fs::exists(place.path()));
}

TEST(ListeningSocketTest, PathsThatCannotBe) {
  EXPECT_EQ(Error("unix:"), "the path is empty");
  EXPECT_EQ(Error("unix:/" + std::string(200, 'x')),
            "expected a path of at most 103 bytes; got 201");
  EXPECT_EQ(Error("unix:/nowhere/s"), "No such file or directory");
}

TEST(ListeningSocketTest, TheFirstAddressTakesIpv4Too) {
  for (const char* address : {"127.0.0.1", "0.0.0.0", "localhost", "::", "::1"}) {
    const auto socket = ListeningSocket::BindFirst(address, 0);
    if (std::string(address).find(':') != std::string::npos && !socket.ok()) continue;  // no IPv6
    ASSERT_TRUE(socket.ok()) << socket.status();
    ASSERT_TRUE((*socket)->Listen().ok());
    EXPECT_GT((*socket)->port(), 0) << address;
    if (std::string(address) != "::") continue;
    const TcpClient client((*socket)->port());
    EXPECT_TRUE(client.connected());
  }
  EXPECT_EQ(ListeningSocket::BindFirst("no such host.invalid", 0).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace listening_socket_test
}  // namespace attendant::server
