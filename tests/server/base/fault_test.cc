#include "server/base/fault.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "server/metrics/refusal.h"

namespace attendant::server {
namespace fault_test {

TEST(GuardedTest, IsOkIfNothingFails) {
  bool ran = false;
  EXPECT_EQ(Guarded([&] { ran = true; }), absl::OkStatus());
  EXPECT_TRUE(ran);
  EXPECT_EQ(Guarded([] { return absl::OkStatus(); }), absl::OkStatus());
}

TEST(GuardedTest, IsTheStatusThatIsReturned) {
  const absl::Status status = absl::NotFoundError("here");
  EXPECT_EQ(Guarded([&] { return status; }), status);
}

TEST(GuardedTest, IsTheStatusOfWhatIsThrown) {
  const absl::Status no_memory = Guarded([] { throw std::bad_alloc(); });
  EXPECT_EQ(no_memory.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(no_memory), "memory");
  EXPECT_EQ(Guarded([] { throw std::runtime_error("a secret"); }),
            absl::InternalError("internal error"));
  EXPECT_EQ(Guarded([]() -> absl::Status { throw 1; }), absl::InternalError("internal error"));
}

}  // namespace fault_test
}  // namespace attendant::server
