// Tests of answers that nobody reads: the client gives no window to send them in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace unread_answer_test {

using ::testing::HasSubstr;

TestServerOptions WithShortSendTimeout() {
  TestServerOptions options;
  options.limits.send_timeout = absl::Milliseconds(50);
  return options;
}

uint32_t Send(RawHttp2& connection, const std::string& method, const std::string& message) {
  const uint32_t call = connection.StartCall("/attendant.v1.EncoderService/" + method);
  connection.SendMessage(call, static_cast<uint32_t>(message.size()), message);
  return call;
}

v1::EncodeRequest Request() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  *request.mutable_token_ids() = IntegerTensor({1, 2}, {3, 4});
  return request;
}

TEST(UnreadAnswerTest, EndsItsCallAndGivesBackWhatItHeld) {
  TestServer server(WithShortSendTimeout());
  RawHttp2 connection(server.port(), {.initial_window = 0});
  connection.AwaitEnd(Send(connection, "Encode", Request().SerializeAsString()));
  server.AwaitInflight(0);
  EXPECT_EQ(server.admission().memory().counts().all(), 0);
  EXPECT_THAT(server.Scrape(), HasSubstr("attendant_unsent_answers_total 1\n"));
}

TEST(UnreadAnswerTest, IsHeldUntilThen) {
  TestServerOptions options;
  options.limits.send_timeout = absl::Hours(1);
  TestServer server(options);
  {
    RawHttp2 connection(server.port(), {.initial_window = 0});
    Send(connection, "Encode", Request().SerializeAsString());
    const auto& memory = server.admission().memory();
    while (memory.counts().held_for(HeldFor::kAnswer) == 0) std::this_thread::yield();
    EXPECT_GT(memory.counts().held_for(HeldFor::kAnswer), 2 * 32 * 4);
    EXPECT_EQ(memory.counts().held_for(HeldFor::kRequest), 0);
    EXPECT_EQ(server.admission().slots().counts().all(), 1);
  }
  server.AwaitInflight(0);  // as the connection is closed
  EXPECT_EQ(server.admission().memory().counts().all(), 0);
}

TEST(UnreadAnswerTest, EndsItsStream) {
  TestServer server(WithShortSendTimeout());
  RawHttp2 connection(server.port(), {.initial_window = 0});
  v1::EncodeStreamRequest item;
  item.set_id(1);
  *item.mutable_request() = Request();
  connection.AwaitEnd(Send(connection, "EncodeStream", item.SerializeAsString()));
  server.AwaitStreams(0);
  server.AwaitInflight(0);
  EXPECT_EQ(server.admission().memory().counts().all(), 0);
  EXPECT_THAT(server.Scrape(), HasSubstr("attendant_unsent_answers_total 1\n"));
}

}  // namespace unread_answer_test
}  // namespace attendant::server
