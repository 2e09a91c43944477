#include "server/rpc/open_calls.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

namespace attendant::server {
namespace open_calls_test {

// A connection whose calls begin on this thread.
class Caller {
 public:
  explicit Caller(OpenCalls& calls) : calls_(calls) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
  }
  ~Caller() {
    EndAll();
    for (const int end : ends_) close(end);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void Start(int calls) {
    for (int i = 0; i < calls; ++i) {
      Read();
      contexts_.push_back(calls_.NewGenericCallbackServerContext());
    }
  }

  void EndAll() {
    for (grpc::CallbackServerContext* context : contexts_) calls_.Release(context);
    contexts_.clear();
  }

  bool cut() const { return send(ends_[1], "x", 1, MSG_NOSIGNAL) != 1; }

 private:
  void Read() const {
    char byte;
    iovec part = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    recvmsg(ends_[0], &message, MSG_DONTWAIT);
  }

  OpenCalls& calls_;
  std::array<int, 2> ends_ = {};
  std::vector<grpc::CallbackServerContext*> contexts_;
};

class OpenCallsTest : public ::testing::Test {
 protected:
  int cuts_ = 0;
  OpenCalls calls_{{.of_all = 100, .of_connection = 10}, [this] { ++cuts_; }};
};

TEST_F(OpenCallsTest, OneConnectionMayHaveAsManyCallsAsAreFree) {
  Caller caller(calls_);
  caller.Start(50);
  EXPECT_FALSE(caller.cut());
  caller.Start(1);
  EXPECT_TRUE(caller.cut());
  EXPECT_EQ(cuts_, 1);
  caller.Start(20);  // that were read before
  EXPECT_EQ(cuts_, 1);
}

TEST_F(OpenCallsTest, CallsThatHaveEndedDoNotCount) {
  Caller caller(calls_);
  for (int i = 0; i < 5; ++i) {
    caller.Start(50);
    caller.EndAll();
  }
  EXPECT_FALSE(caller.cut());
}

TEST_F(OpenCallsTest, EachConnectionMayHaveItsOwn) {
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 11; ++i) {
    callers.push_back(std::make_unique<Caller>(calls_));
    callers.back()->Start(10);
  }
  EXPECT_EQ(cuts_, 0);
  callers[3]->Start(1);
  EXPECT_TRUE(callers[3]->cut());
  EXPECT_FALSE(callers[2]->cut());
}

// As gRPC does where it got no context from here.
TEST_F(OpenCallsTest, AContextOfAnotherIsLeftAlone) {
  grpc::GenericCallbackServerContext own;
  calls_.Release(static_cast<grpc::CallbackServerContext*>(&own));
}

}  // namespace open_calls_test
}  // namespace attendant::server
