#include "server/execution/row_plans.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "gmock/gmock.h"
#include "tests/server/support/service_parts.h"

namespace attendant::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Collects what is logged during its lifetime.
class LogCapture {
 public:
  LogCapture() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
  }
  ~LogCapture() { spdlog::set_default_logger(saved_); }
  std::string text() const { return text_.str(); }

 private:
  const std::shared_ptr<spdlog::logger> saved_ = spdlog::default_logger();
  std::ostringstream text_;
};

class RowPlansTest : public testing::Test {
 protected:
  const ServiceContext& Context(RowPolicy policy) {
    context_ = std::make_unique<const ServiceContext>(parts_.Context({1, 2, policy}));
    return *context_;
  }

  EncoderRun Run(const ServedModel& model) const { return EncoderRun(model.encoder, 600, 2); }

  // On its clock, both plans take the same time.
  ServiceParts parts_{absl::Microseconds(1)};
  std::unique_ptr<const ServiceContext> context_;
  const ServedModel& tiny_ = *TestModels().at("tiny");
  const ServedModel& bare_ = *TestModels().at("bare");
};

TEST_F(RowPlansTest, TimesEachModelOnceAndLogsIt) {
  RowPlans plans(Context(RowPolicy::kTimed));
  const LogCapture log;
  EncoderRun first = Run(tiny_), second = Run(tiny_), other = Run(bare_);
  plans.Apply(tiny_, first);
  EXPECT_THAT(log.text(), AllOf(HasSubstr("model tiny: one team for each product; "),
                                HasSubstr("rows against team: 512 tokens 1.00x")));
  const int64_t asked = parts_.clock.asked();
  EXPECT_GT(asked, 0);
  plans.Apply(tiny_, second);
  EXPECT_EQ(parts_.clock.asked(), asked);
  plans.Apply(bare_, other);
  EXPECT_GT(parts_.clock.asked(), asked);
  EXPECT_THAT(log.text(), HasSubstr("model bare: "));
}

TEST_F(RowPlansTest, ModelsThatShareWeightsShareThePlan) {
  RowPlans plans(Context(RowPolicy::kTimed));
  ServedModel overlay = tiny_;
  overlay.name = "overlay";
  overlay.base = "tiny";
  EncoderRun of_overlay = Run(overlay), of_base = Run(tiny_);
  plans.Apply(overlay, of_overlay);
  const int64_t asked = parts_.clock.asked();
  plans.Apply(tiny_, of_base);
  EXPECT_EQ(parts_.clock.asked(), asked);
}

TEST_F(RowPlansTest, APolicyThatIsSetIsNeitherTimedNorLogged) {
  const LogCapture log;
  for (const auto& [policy, rows_from] :
       {std::pair(RowPolicy::kTeam, 0), std::pair(RowPolicy::kRows, 1)}) {
    RowPlans plans(Context(policy));
    EXPECT_EQ(plans.RowsFrom(tiny_), 0);
    EncoderRun run = Run(tiny_);
    plans.Apply(tiny_, run);
    EXPECT_EQ(plans.RowsFrom(tiny_), rows_from);
  }
  EXPECT_EQ(parts_.clock.asked(), 0);
  EXPECT_THAT(log.text(), IsEmpty());
}

TEST(DescribeRowPlanTest, SaysWhatWasChosenAndByWhat) {
  EXPECT_EQ(Describe(RowPlan{}), "one team for each product; nothing was timed");
  const RowPlan plan = {.rows_from = 512,
                        .trials = {{256, absl::Milliseconds(97), absl::Milliseconds(100)},
                                   {512, absl::Milliseconds(104), absl::Milliseconds(100)}}};
  EXPECT_EQ(Describe(plan),
            "one team for each product below 512 tokens, rows for each thread from there; rows "
            "against team: 256 tokens 0.97x, 512 tokens 1.04x");
}

}  // namespace
}  // namespace attendant::server
