#include "engine/layers/state/row_plan.h"

#include <utility>
#include <vector>

#include "engine/layers/encoder.h"
#include "gmock/gmock.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace row_plan_test {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Pair;

// A machine whose time advances only while it computes, by a given time for each token.
class FakeMachine {
 public:
  // `gain` tells how much faster rows are than the team, by tokens.
  FakeMachine(absl::Duration token, double (*gain)(int64_t tokens)) : token_(token), gain_(gain) {}

  RowPlan Choose(int64_t most_tokens) {
    return TimeRowPlans(
        most_tokens, [this](int64_t tokens, bool by_rows) { Run(tokens, by_rows); },
        [this] { return now_; });
  }

  // Makes every n-th run take twice its time.
  void DisturbEvery(size_t n) { disturbed_ = n; }

  absl::Duration spent() const { return now_ - absl::UnixEpoch(); }
  const std::vector<std::pair<int64_t, bool>>& runs() const { return runs_; }

 private:
  void Run(int64_t tokens, bool by_rows) {
    runs_.emplace_back(tokens, by_rows);
    const double factor = disturbed_ > 0 && runs_.size() % disturbed_ == 0 ? 2 : 1;
    now_ += token_ * static_cast<double>(tokens) * factor / (by_rows ? gain_(tokens) : 1);
  }

  const absl::Duration token_;
  double (*const gain_)(int64_t tokens);
  size_t disturbed_ = 0;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::pair<int64_t, bool>> runs_;
};

double Worse(int64_t) { return 0.95; }
double Alike(int64_t) { return 0.99; }
double Better(int64_t) { return 1.06; }
double BetterFrom512(int64_t tokens) { return tokens >= 512 ? 1.06 : 0.9; }
double BetterBelow1024(int64_t tokens) { return tokens < 1024 ? 1.2 : 0.95; }

std::vector<int64_t> Tried(const RowPlan& plan) {
  std::vector<int64_t> tokens;
  for (const RowTrial& trial : plan.trials) tokens.push_back(trial.tokens);
  return tokens;
}

TEST(TimeRowPlansTest, RowsFromTheSmallestNumberThatDoesNotLose) {
  FakeMachine machine(absl::Microseconds(8), BetterFrom512);
  const RowPlan plan = machine.Choose(16384);
  EXPECT_EQ(plan.rows_from, 512);
  EXPECT_THAT(Tried(plan), ElementsAre(256, 512, 1024));
  EXPECT_NEAR(plan.trials[0].speedup(), 0.9, 1e-6);
  EXPECT_NEAR(plan.trials[2].speedup(), 1.06, 1e-6);
  EXPECT_EQ(plan.trials[2].team, absl::Microseconds(8 * 1024));
  for (double (*gain)(int64_t) : {Alike, Better}) {
    EXPECT_EQ(FakeMachine(absl::Microseconds(8), gain).Choose(16384).rows_from, 128);
  }
}

TEST(TimeRowPlansTest, NeverIfTheLargestNumberLoses) {
  for (double (*gain)(int64_t) : {Worse, BetterBelow1024}) {
    const RowPlan plan = FakeMachine(absl::Microseconds(8), gain).Choose(16384);
    EXPECT_EQ(plan.rows_from, 0);
    EXPECT_THAT(Tried(plan), ElementsAre(1024));
  }
}

TEST(TimeRowPlansTest, NoMoreTokensThanThereWillBe) {
  EXPECT_THAT(Tried(FakeMachine(absl::Microseconds(8), Better).Choose(1000)),
              ElementsAre(128, 256, 512));
  FakeMachine machine(absl::Microseconds(8), Better);
  EXPECT_THAT(Tried(machine.Choose(127)), IsEmpty());
  EXPECT_THAT(machine.runs(), IsEmpty());
}

TEST(TimeRowPlansTest, BothWaysComeFirstByTurns) {
  FakeMachine machine(absl::Microseconds(8), Better);
  machine.Choose(128);
  EXPECT_THAT(machine.runs(),
              ElementsAre(Pair(64, false), Pair(64, false), Pair(128, true), Pair(128, false),
                          Pair(128, false), Pair(128, true), Pair(128, true), Pair(128, false),
                          Pair(128, false), Pair(128, true), Pair(128, true), Pair(128, false)));
}

// A disturbance changes single times, but not the best ones.
TEST(TimeRowPlansTest, TheBestTimesCount) {
  for (const size_t n : {3, 4, 5, 7}) {
    FakeMachine machine(absl::Microseconds(8), BetterFrom512);
    machine.DisturbEvery(n);
    EXPECT_EQ(machine.Choose(16384).rows_from, 512) << n;
  }
}

TEST(TimeRowPlansTest, KeepsToItsTimeOnASlowMachine) {
  for (const int token : {30, 60, 105, 200, 400, 3000}) {
    for (double (*gain)(int64_t) : {Worse, Better}) {
      FakeMachine machine(absl::Microseconds(token), gain);
      const RowPlan plan = machine.Choose(16384);
      const absl::Duration warm_up = 2 * 64 * absl::Microseconds(token);
      EXPECT_LE(machine.spent(), warm_up + absl::Milliseconds(270)) << token;
      EXPECT_EQ(plan.rows_from > 0, gain == Better && !plan.trials.empty()) << token;
    }
  }
  EXPECT_THAT(Tried(FakeMachine(absl::Microseconds(105), Alike).Choose(16384)), ElementsAre(256));
  EXPECT_THAT(Tried(FakeMachine(absl::Microseconds(3000), Better).Choose(16384)), IsEmpty());
}

TEST(TimeRowPlansTest, TakesATieForRowsEvenIfNoTimePasses) {
  EXPECT_EQ(FakeMachine(absl::ZeroDuration(), Worse).Choose(16384).rows_from, 128);
}

std::shared_ptr<const Encoder> SomeEncoder(const ModelDescription& model) {
  MemoryWeights weights = RandomWeights(model, 1);
  return LoadEncoder(model, weights);
}

// Advances by a microsecond each time it is asked, and counts.
struct StepClock {
  absl::Time operator()() const { return absl::UnixEpoch() + absl::Microseconds(++asked); }
  mutable int64_t asked = 0;
};

TEST(ChooseRowPlanTest, APolicyThatIsSetNeedsNoClock) {
  EncoderRun run(SomeEncoder(SmallModel(2, 3, 16)), 600, 2);
  StepClock clock;
  EXPECT_EQ(run.ChooseRowPlan(RowPolicy::kTeam, clock).rows_from, 0);
  EXPECT_EQ(run.ChooseRowPlan(RowPolicy::kRows, clock).rows_from, 1);
  EXPECT_EQ(clock.asked, 0);
}

TEST(ChooseRowPlanTest, OneThreadHasNothingToChoose) {
  EncoderRun run(SomeEncoder(SmallModel(2, 3, 16)), 600, 1);
  StepClock clock;
  const RowPlan plan = run.ChooseRowPlan(RowPolicy::kTimed, clock);
  EXPECT_EQ(plan.rows_from, 0);
  EXPECT_THAT(plan.trials, IsEmpty());
  EXPECT_EQ(clock.asked, 0);
}

TEST(ChooseRowPlanTest, LayersThatNeedCrossKvAreNotTimed) {
  ModelDescription model = SmallModel(1, 3, 16);
  model.layer.norms.placement = NormPlacement::kNone;
  model.layer.feed_forward.width = 0;
  model.layer.attention.key_input_width = 20;
  model.layer.attention.value_input_width = 24;
  ASSERT_TRUE(model.layer.needs_cross_kv());
  EncoderRun run(SomeEncoder(model), 600, 2);
  StepClock clock;
  EXPECT_THAT(run.ChooseRowPlan(RowPolicy::kTimed, clock).trials, IsEmpty());
}

// On this clock, both plans take the same time.
TEST(ChooseRowPlanTest, TimesLayersOfAnyModel) {
  std::vector<ModelDescription> models = {SmallModel(2, 3, 16), SmallModel(1, 3, 16)};
  models.back().layer.attention.kind = AttentionKind::kLinformer;
  models.back().layer.attention.linformer.keys = 20;
  models.back().layer.attention.linformer.positions = 30;
  models.push_back(SmallModel(1, 3, 16));
  models.back().layer.norms.placement = NormPlacement::kNone;
  models.back().layer.feed_forward.width = 0;
  models.push_back(SmallModel(2, 3, 16));
  models.back().layer.extras.convolution = {.taps = 3, .groups = 2};
  for (const ModelDescription& model : models) {
    EncoderRun run(SomeEncoder(model), 600, 2);
    StepClock clock;
    const RowPlan plan = run.ChooseRowPlan(RowPolicy::kTimed, clock);
    EXPECT_EQ(plan.rows_from, 128);
    EXPECT_THAT(Tried(plan), ElementsAre(128, 256, 512));
    EXPECT_THAT(plan.trials, Each(AllOf(Field(&RowTrial::team, absl::Microseconds(1)),
                                        Field(&RowTrial::rows, absl::Microseconds(1)))));
  }
}

TEST(ChooseRowPlanTest, LeavesNoTraceInResults) {
  const std::vector<Sequence> sequences = RandomSequences({100, 1, 37, 162}, 48, 1);
  const auto encoder = SomeEncoder(SmallModel(2, 3, 16));
  EncoderRun untouched(encoder, 600, 2), timed(encoder, 600, 2);
  timed.SetRowPlan(timed.ChooseRowPlan(RowPolicy::kTimed, StepClock()));
  const std::vector<Sequence> expected = Encode(untouched, *encoder, sequences);
  const std::vector<Sequence> outputs = Encode(timed, *encoder, sequences);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(BitEqual(outputs[i], expected[i])) << i;
}

}  // namespace row_plan_test
}  // namespace attendant::test_support
