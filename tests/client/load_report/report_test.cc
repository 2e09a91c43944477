#include "client/load_report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/load_report/some_report.h"

namespace attendant::client {
namespace report_test {

using testing::HasSubstr;
using testing::Not;

TEST(ReportTableTest, HasEveryFigure) {
  const std::string table = ReportTable(SomeReport());
  EXPECT_THAT(table, HasSubstr("method             encode\nlengths            5..512\n"));
  EXPECT_THAT(table, HasSubstr("200 ok, 4 errors in 2.00 s; 7 more during warm-up\n"));
  EXPECT_THAT(table, HasSubstr("RESOURCE_EXHAUSTED: 4\n"));
  EXPECT_THAT(table, HasSubstr("1000.0 kept tokens/s, 100.00 requests/s\n"));
  EXPECT_THAT(table, HasSubstr("queue 1.000  copy 0.500  compute 3.000\n"));
  EXPECT_THAT(table, HasSubstr("batch of a request mean 40.0 tokens, 2.00 requests\n"));
  EXPECT_THAT(table, HasSubstr("goodput            75.00 requests/s: 150 answered within 150ms, "
                               "73.5 % of all\n"));
  for (const char* name : {"mean", "p50", "p90", "p95", "p99", "p99.9", "max", "300.000"}) {
    EXPECT_THAT(table, HasSubstr(name));
  }
  EXPECT_THAT(table, Not(HasSubstr("warning")));
}

TEST(ReportTableTest, WarnsWhenTheGeneratorFellBehind) {
  LoadReport report = SomeReport();
  for (int i = 0; i < 5; ++i) report.steps[0].measured.send_lag.Record(absl::Milliseconds(10));
  EXPECT_THAT(ReportTable(report), HasSubstr("warning: 2.4 % of the requests were sent more than"));
}

TEST(ReportTableTest, NothingMeasuredIsAllZero) {
  LoadReport empty;
  empty.steps.emplace_back();
  EXPECT_THAT(ReportTable(empty), HasSubstr("0 ok, 0 errors"));
}

TEST(ReportTableTest, SeveralStepsHaveALineEach) {
  LoadReport report = SomeReport();
  report.steps.push_back(report.steps[0]);
  report.steps[1].load = {.rate = 150};
  const std::string table = ReportTable(report);
  EXPECT_THAT(table,
              HasSubstr("8 in flight                  100.00      75.00    104.412    102."));
  EXPECT_THAT(table, HasSubstr("150 requests/s               100.00      75.00"));
  EXPECT_THAT(table, HasSubstr(" 1.961     0.000\n"));
  EXPECT_THAT(table, Not(HasSubstr("  met\n")));
}

TEST(ReportTableTest, ASearchSaysWhatHeldAndWhatItFound) {
  LoadReport report = SomeSearch();
  EXPECT_THAT(ReportTable(report), HasSubstr("late %   met\n"));
  EXPECT_THAT(ReportTable(report), HasSubstr(" 1.961     0.000\n50 requests/s"));
  EXPECT_THAT(ReportTable(report), HasSubstr("0.000   yes\n75 requests/s"));
  EXPECT_THAT(
      ReportTable(report),
      HasSubstr("0.000    no\n\nobjectives         p99<250ms, max<1s\n"
                "closed loop        100.00 requests/s\n"
                "highest rate       50 requests/s; it fails at 75; the search ended early\n"));
  report.search->converged = true;
  EXPECT_THAT(ReportTable(report), HasSubstr("50 requests/s; it fails at 75\n"));
  report.search->found = 0;
  EXPECT_THAT(ReportTable(report), HasSubstr("highest rate       none of the rates tried\n"));
}

TEST(ReportTableTest, WarnsOfTheStepThatWasSentLate) {
  LoadReport report = SomeSearch();
  for (int i = 0; i < 5; ++i) report.steps[2].measured.send_lag.Record(absl::Milliseconds(10));
  EXPECT_THAT(ReportTable(report), HasSubstr("warning: at 75 requests/s, 2.4 % of the requests"));
}

TEST(ProgressLineTest, SaysHowItGoes) {
  EXPECT_EQ(ProgressLine(Statistics(), absl::Seconds(1), absl::Seconds(12)),
            "   12 s  ok 0  errors 0  0.0 req/s  0 tokens/s  p50 0.0 ms  p99 0.0 ms");
}

}  // namespace report_test
}  // namespace attendant::client
