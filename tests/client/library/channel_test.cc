#include "client/channel.h"

#include <gtest/gtest.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "tests/client/support/small_requests.h"

namespace attendant::client {
namespace channel_test {

// No server of this process uses gRPC's callback threads, so that the end of each call, which runs
// on one of them, is also the end of these threads.
TEST(ClientChannelTest, CallsOutliveTheProcessesLastChannel) {
  // As the programs do; see client/commands/main.cc.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // A port could become another process's, and a shared connection would wait before it tries
  // again.
  const auto connect = [] {
    return Client::Connect("unix:/nowhere", {.own_connection = true, .retry = false});
  };
  for (int i = 0; i < 100; ++i) {
    absl::Notification unary;
    connect().AttendAsync(SmallAttend(), {}, [&](const absl::StatusOr<AttendResult>& result) {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
      unary.Notify();
    });
    unary.WaitForNotification();
    connect().OpenLoadStream()->SendAsync(
        PreparedRequest::Encode(SmallEncode()), [](const absl::StatusOr<Execution>& answer) {
          EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
        });
  }
}

}  // namespace channel_test
}  // namespace attendant::client
