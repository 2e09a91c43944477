#include "client/load_requests/length_distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace attendant::client {
namespace length_distribution_test {

using testing::HasSubstr;

std::vector<int64_t> Draws(const std::string& text, int count) {
  const auto lengths = LengthDistribution::Parse(text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  std::mt19937_64 random(5);
  std::vector<int64_t> draws;
  for (int i = 0; i < count; ++i) draws.push_back(lengths->Draw(random));
  std::sort(draws.begin(), draws.end());
  return draws;
}

TEST(LengthDistributionTest, Fixed) {
  const std::vector<int64_t> draws = Draws("128", 100);
  EXPECT_EQ(draws.front(), 128);
  EXPECT_EQ(draws.back(), 128);
  EXPECT_EQ(LengthDistribution::Parse("128")->longest(), 128);
}

TEST(LengthDistributionTest, UniformReachesBothEndsEvenly) {
  const std::vector<int64_t> draws = Draws("5..512", 50000);
  EXPECT_EQ(draws.front(), 5);
  EXPECT_EQ(draws.back(), 512);
  double sum = 0;
  for (int64_t draw : draws) sum += static_cast<double>(draw);
  EXPECT_NEAR(sum / 50000, 258.5, 3);
  EXPECT_NEAR(static_cast<double>(draws[12500]), 131.5, 5);
}

TEST(LengthDistributionTest, LognormalHasItsMedianAndSigma) {
  const std::vector<int64_t> draws = Draws("lognormal:100:0.5:100000", 50000);
  EXPECT_NEAR(static_cast<double>(draws[25000]), 100, 2);
  // 68.3 % are within one sigma.
  EXPECT_NEAR(static_cast<double>(draws[7935]), 100 * std::exp(-0.5), 2);
  EXPECT_NEAR(static_cast<double>(draws[42065]), 100 * std::exp(0.5), 4);
}

TEST(LengthDistributionTest, LognormalIsCut) {
  const std::vector<int64_t> draws = Draws("lognormal:24:2:64", 10000);
  EXPECT_EQ(draws.front(), 1);
  EXPECT_EQ(draws.back(), 64);
  EXPECT_EQ(LengthDistribution::Parse("lognormal:24:0.8")->longest(), 512);
}

TEST(LengthDistributionTest, Refuses) {
  for (const char* text :
       {"", "0", "-1", "x", "1.5", "5..", "..5", "6..5", "0..5", "1..99999999999", "lognormal",
        "lognormal:24", "lognormal:0:1", "lognormal:24:-1", "lognormal:nan:1", "lognormal:24:nan",
        "lognormal:24:1:0", "lognormal:24:1:9:9", "normal:1:2"}) {
    const absl::Status status = LengthDistribution::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("; got \"") + text + "\""));
  }
}

TEST(LengthDistributionTest, RefusesAMedianAboveTheLongest) {
  EXPECT_FALSE(LengthDistribution::Parse("lognormal:24:1:23").ok());
  EXPECT_FALSE(LengthDistribution::Parse("lognormal:513:1").ok());
  EXPECT_TRUE(LengthDistribution::Parse("lognormal:513:1:513").ok());
}

}  // namespace length_distribution_test
}  // namespace attendant::client
