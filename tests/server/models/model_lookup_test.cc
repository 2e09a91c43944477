#include "server/models/model_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace model_lookup_test {

// The message of a name that none of the models has.
std::string MissingFrom(const std::vector<std::string>& served, const std::string& name) {
  ServedModels models;
  for (const std::string& one : served) models.emplace(one, nullptr);
  const absl::Status status = FindModel(models, name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  return std::string(status.message());
}

TEST(ModelLookupTest, TellsTheNamesThatThereAreTheNearestFirst) {
  EXPECT_EQ(MissingFrom({"bge-m3", "minilm", "splade"}, "mini-lm"),
            "model: not found (no model is named \"mini-lm\"); the models are \"minilm\", "
            "\"bge-m3\", \"splade\"");
  EXPECT_EQ(MissingFrom({"minilm"}, "x"),
            "model: not found (no model is named \"x\"); the model is \"minilm\"");
  EXPECT_EQ(MissingFrom({}, "x"),
            "model: not found (no model is named \"x\"); the server has no models");
}

TEST(ModelLookupTest, TellsNoMoreNamesThanAMessageHasRoomFor) {
  std::vector<std::string> served;
  for (int i = 0; i < 1000; ++i) served.push_back(absl::StrCat("m", i));
  EXPECT_EQ(MissingFrom(served, "m99999"),
            "model: not found (no model is named \"m99999\"); the models are \"m999\", \"m199\", "
            "\"m299\", \"m399\", \"m499\", \"m599\", \"m699\", \"m799\" and 992 more");
  served.clear();
  for (int i = 0; i < 5000; ++i) served.push_back(absl::StrCat("org/model-", i, "-base"));
  const std::string message = MissingFrom(served, "Org/model-4321-base");
  EXPECT_THAT(message, testing::HasSubstr("; the models are \"org/model-4321-base\", "));
  EXPECT_THAT(message, testing::EndsWith("\" and 4992 more"));
  EXPECT_LT(message.size(), 300u);
  const std::string long_name(1 << 20, 'x');
  EXPECT_LT(MissingFrom({std::string(5000, 'y')}, long_name).size(), 400u);
}

}  // namespace model_lookup_test
}  // namespace attendant::server
