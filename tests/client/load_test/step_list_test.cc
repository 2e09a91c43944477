#include "client/load_test/step_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::client {
namespace step_list_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr StepRange kNumbers = {.least = 0.001, .most = 1000};
constexpr StepRange kWhole = {.least = 1, .most = 100, .whole = true};

TEST(StepListTest, OneAListOrARamp) {
  EXPECT_THAT(*ParseSteps("0.5", kNumbers), ElementsAre(0.5));
  EXPECT_THAT(*ParseSteps("50,100,20", kNumbers), ElementsAre(50, 100, 20));
  EXPECT_THAT(*ParseSteps("50..400:8", kNumbers),
              ElementsAre(50, 100, 150, 200, 250, 300, 350, 400));
  EXPECT_THAT(*ParseSteps("400..100:2", kNumbers), ElementsAre(400, 100));
  EXPECT_THAT(*ParseSteps("1,8,32", kWhole), ElementsAre(1, 8, 32));
  EXPECT_THAT(*ParseSteps("1..10:4", kWhole), ElementsAre(1, 4, 7, 10));
  EXPECT_THAT(*ParseSteps("1..2:3", kWhole), ElementsAre(1, 2, 2));
}

TEST(StepListTest, RefusesEverythingElse) {
  for (const char* text :
       {"", ",", "5,", "x", "0", "-1", "1001", "nan", "5..10", "5..10:", "5..10:1", "5..10:1001",
        "0..10:3", "5..2000:3", "5:3", "..:2", "5..10:2.5"}) {
    const auto steps = ParseSteps(text, kNumbers);
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("numbers in 0.001..1000; got \""));
  }
  EXPECT_THAT(std::string(ParseSteps("1.5", kWhole).status().message()),
              HasSubstr("steps) of whole numbers in 1..100; got \"1.5\""));
}

}  // namespace step_list_test
}  // namespace attendant::client
