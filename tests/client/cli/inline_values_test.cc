#include "client/cli/inline_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::client {
namespace inline_values_test {

using testing::ElementsAre;

TEST(ParseFloatRowsTest, ReadsRows) {
  const auto tensor = ParseFloatRows("1,-0.5; 2e3 ,4");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->shape, ElementsAre(2, 2));
  EXPECT_THAT(ToFloats(*tensor).value(), ElementsAre(1.0f, -0.5f, 2000.0f, 4.0f));
}

TEST(ParseFloatRowsTest, Refuses) {
  EXPECT_EQ(ParseFloatRows("1,2;3").status().message(),
            "expected rows of one length; got rows of 2 and of 1 values");
  EXPECT_EQ(ParseFloatRows("1,x").status().message(), "expected a number in range; got \"x\"");
  EXPECT_EQ(ParseFloatRows("1e39").status().message(), "expected a number in range; got \"1e39\"");
  EXPECT_TRUE(ParseFloatRows("-inf,3e38,Infinity").ok());
  EXPECT_EQ(ParseFloatRows("1,").status().message(), "expected a number in range; got \"\"");
}

TEST(ParseIntRowsTest, ReadsRaggedRows) {
  EXPECT_THAT(ParseIntRows("101,2,-1;3").value(),
              ElementsAre(ElementsAre(101, 2, -1), ElementsAre(3)));
  EXPECT_EQ(ParseIntRows("1.5").status().message(), "expected a number in range; got \"1.5\"");
  EXPECT_FALSE(ParseIntRows("99999999999999999999").ok());
}

TEST(LooksInlineTest, TellsNumbersFromFiles) {
  EXPECT_TRUE(LooksInline("101,2023;102"));
  EXPECT_FALSE(LooksInline("ids.npy"));
  EXPECT_FALSE(LooksInline(""));
}

TEST(LooksLikeFloatsTest, TellsNumbersFromFiles) {
  for (const char* text : {"1", "-0.5,1", "1e-3;2", " .5 , 1"}) {
    EXPECT_TRUE(LooksLikeFloats(text)) << text;
  }
  for (const char* text : {"", "1.npy", "0.5x.safetensors:a,b", "memory.csv"}) {
    EXPECT_FALSE(LooksLikeFloats(text)) << text;
  }
}

TEST(ParseDimensionsTest, ReadsAndRefuses) {
  EXPECT_THAT(ParseDimensions("2x5x768").value(), ElementsAre(2, 5, 768));
  for (const char* text : {"", "2x", "0x1", "-1x2", "axb", "2x99999999999999999999"}) {
    EXPECT_FALSE(ParseDimensions(text).ok()) << text;
  }
}

}  // namespace inline_values_test
}  // namespace attendant::client
