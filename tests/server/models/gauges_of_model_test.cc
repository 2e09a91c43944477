#include "server/models/gauges_of_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/metrics/server_metrics.h"
#include "tests/server/support/test_server.h"

namespace attendant::server {
namespace gauges_of_model_test {

using ::testing::HasSubstr;
using ::testing::Not;

// A version of a model, not yet prepared, with costs of its own.
ServedModel Version(const std::string& name, int64_t version) {
  ServedModel model(name, TestModels().at("counting")->encoder);
  model.version = version;
  model.cost->SetRates({0.125, 5e10, 1e10});
  return model;
}

std::string Shown(ServerMetrics& metrics, const std::vector<ServedModel>& models) {
  Gauges gauges;
  for (const ServedModel& model : models) AddGauges(model, absl::UnixEpoch(), gauges);
  return metrics.Scrape(gauges);
}

TEST(GaugesOfModelTest, DescribeIt) {
  ServerMetrics metrics("test", "isa", "onednn");
  const ServedModel model = Version("m", 7);
  const std::string shown = Shown(metrics, {model});
  EXPECT_THAT(shown, HasSubstr("# TYPE attendant_model_info gauge\n"
                               "attendant_model_info{compute_type=\"f32\",family=\"counting\","
                               "heads=\"4\",hidden_size=\"32\",layers=\"2\",model=\"m\","
                               "version=\"7\"} 1\n"));
  EXPECT_THAT(shown, HasSubstr("# TYPE attendant_cost_seconds_per_layer gauge\n"
                               "attendant_cost_seconds_per_layer{model=\"m\"} 0.125\n"));
  EXPECT_THAT(
      shown,
      HasSubstr("# TYPE attendant_cost_flops_per_second gauge\n"
                "attendant_cost_flops_per_second{model=\"m\",part=\"products\"} 50000000000\n"
                "attendant_cost_flops_per_second{model=\"m\",part=\"attention\"} 10000000000\n"));
  EXPECT_THAT(shown, HasSubstr("# TYPE attendant_cost_correction gauge\n"
                               "attendant_cost_correction{model=\"m\"} 1\n"));
}

TEST(GaugesOfModelTest, CountTheWeightsOfAllCopiesAndTheActivationsOfAllInstances) {
  ServerMetrics metrics("test", "isa", "onednn");
  ServedModel model = Version("m", 1);
  const int64_t weights = model.encoder->weight_bytes();
  EXPECT_GT(weights, 0);
  EXPECT_THAT(Shown(metrics, {model}),
              HasSubstr(absl::StrCat(
                  "# TYPE attendant_model_bytes gauge\n"
                  "attendant_model_bytes{model=\"m\",part=\"weights\"} ",
                  weights, "\nattendant_model_bytes{model=\"m\",part=\"activations\"} 0\n")));
  model.further_copies = {model.encoder, model.encoder};
  model.runs = std::make_shared<std::vector<EncoderRun>>();
  for (int i = 0; i < 2; ++i) model.runs->emplace_back(model.encoder, 16, 1);
  const int64_t activations = model.runs->front().bytes();
  EXPECT_GT(activations, 0);
  EXPECT_THAT(
      Shown(metrics, {model}),
      HasSubstr(absl::StrCat("attendant_model_bytes{model=\"m\",part=\"weights\"} ", 3 * weights,
                             "\nattendant_model_bytes{model=\"m\",part=\"activations\"} ",
                             2 * activations, "\n")));
}

TEST(GaugesOfModelTest, FollowTheCorrection) {
  ServerMetrics metrics("test", "isa", "onednn");
  const ServedModel model = Version("m", 1);
  for (int i = 0; i < 1000; ++i) model.cost->Observe(1, 1000, absl::UnixEpoch());
  // It approaches its bound of 8.
  EXPECT_THAT(Shown(metrics, {model}), HasSubstr("attendant_cost_correction{model=\"m\"} 7.9999"));
}

TEST(GaugesOfModelTest, AreThoseOfServedVersionsOnly) {
  ServerMetrics metrics("test", "isa", "onednn");
  const std::string before = Shown(metrics, {Version("old", 1), Version("m", 1)});
  EXPECT_THAT(before, HasSubstr("model=\"old\",version=\"1\"} 1\n"));
  EXPECT_THAT(before, HasSubstr("model=\"m\",version=\"1\"} 1\n"));
  const std::string after = Shown(metrics, {Version("m", 2)});
  EXPECT_THAT(after, Not(HasSubstr("old")));
  EXPECT_THAT(after, Not(HasSubstr("version=\"1\"")));
  EXPECT_THAT(after, HasSubstr("model=\"m\",version=\"2\"} 1\n"));
}

}  // namespace gauges_of_model_test
}  // namespace attendant::server
