#include "server/execution/prepare_model.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "gmock/gmock.h"
#include "tests/server/support/service_parts.h"

namespace attendant::server {
namespace prepare_model_test {

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

class PrepareModelTest : public testing::Test {
 protected:
  std::shared_ptr<const ServedModel> Prepare(const ServedModel& model, ThreadPlan plan,
                                             const ServedModel* base = nullptr) {
    return PrepareModel(model, base, 600, plan, clock_);
  }

  // On its clock, both plans take the same time.
  SteppingClock clock_{absl::Microseconds(1)};
  const ServedModel& tiny_ = *TestModels().at("tiny");
};

TEST_F(PrepareModelTest, TimesThePlanOnceForAllInstancesAndLogsIt) {
  const LogCapture log;
  Prepare(tiny_, {1, 2, RowPolicy::kTimed});
  EXPECT_THAT(log.text(), AllOf(HasSubstr("model tiny: one team for each product below 128 tokens"),
                                HasSubstr("rows against team: 128 tokens 1.00x, ")));
  const int64_t asked = clock_.asked();
  EXPECT_GT(asked, 0);
  const auto prepared = Prepare(tiny_, {3, 2, RowPolicy::kTimed});
  EXPECT_EQ(clock_.asked(), 2 * asked);
  EXPECT_EQ(prepared->runs->size(), 3u);
  EXPECT_EQ(tiny_.runs, nullptr);
}

TEST_F(PrepareModelTest, ModelsThatShareWeightsShareThePlan) {
  ServedModel overlay = tiny_;
  overlay.name = "a name before that of the base";
  overlay.base = "tiny";
  const ThreadPlan plan = {1, 2, RowPolicy::kTimed};
  Prepare(tiny_, plan);
  const int64_t asked = clock_.asked();
  const ServedModels prepared = PrepareModels(
      {{overlay.name, std::make_shared<ServedModel>(overlay)}, {"tiny", TestModels().at("tiny")}},
      600, plan, clock_);
  EXPECT_EQ(clock_.asked(), 2 * asked);
  EXPECT_EQ(prepared.size(), 2u);
}

TEST_F(PrepareModelTest, APolicyThatIsSetIsNeitherTimedNorLogged) {
  const LogCapture log;
  EXPECT_EQ(Prepare(tiny_, {1, 2, RowPolicy::kTeam})->row_plan.rows_from, 0);
  EXPECT_EQ(Prepare(tiny_, {1, 2, RowPolicy::kRows})->row_plan.rows_from, 1);
  EXPECT_EQ(clock_.asked(), 0);
  EXPECT_THAT(log.text(), IsEmpty());
}

TEST(DescribeRowPlanTest, SaysWhatWasChosenAndByWhat) {
  EXPECT_EQ(Describe(RowPlan{}), "one team for each product; not timed");
  const RowPlan plan = {.rows_from = 512,
                        .trials = {{256, absl::Milliseconds(97), absl::Milliseconds(100)},
                                   {512, absl::Milliseconds(104), absl::Milliseconds(100)}}};
  EXPECT_EQ(
      Describe(plan),
      "one team for each product below 512 tokens, separate rows for each thread otherwise; rows "
      "against team: 256 tokens 0.97x, 512 tokens 1.04x");
}

}  // namespace prepare_model_test
}  // namespace attendant::server
