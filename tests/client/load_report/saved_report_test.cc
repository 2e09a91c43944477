#include "client/load_report/saved_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/load_report/report_json.h"
#include "tests/client/load_report/some_report.h"
#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace saved_report_test {

using ::testing::HasSubstr;

nlohmann::ordered_json Document() {
  LoadReport report = SomeSearch();
  report.plan.emplace_back("model", "m");
  return ReportJson(report);
}

TEST(SavedReportTest, ReadsWhatWasPrinted) {
  const auto report = ReadReport(ScratchFile("a.json", Document().dump(2)));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->name, "a.json");
  EXPECT_EQ(*report->document, Document());
}

TEST(SavedReportTest, NamesTheFileThatHoldsSomethingElse) {
  EXPECT_EQ(ReadReport(ScratchPath("none.json")).status().code(), absl::StatusCode::kNotFound);
  nlohmann::ordered_json no_latency = Document();
  no_latency["steps"][1].erase("latency_ms");
  nlohmann::ordered_json no_number = Document();
  no_number["steps"][1]["requests_per_s"] = "many";
  nlohmann::ordered_json no_rate = Document();
  no_rate["search"].erase("rate");
  for (const std::string& text : {std::string("{"), std::string("[1]"), std::string("{\"run\": 1}"),
                                  no_latency.dump(), no_number.dump(), no_rate.dump()}) {
    const absl::Status refused = ReadReport(ScratchFile("b.json", text)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("b.json: is not a report of load-test --json: "));
  }
}

TEST(SavedReportTest, ATableHasEachStep) {
  const std::string table = SavedTable(Document());
  EXPECT_THAT(table, HasSubstr("load                       answered/s    goodput/s      mean ms"));
  EXPECT_THAT(table, HasSubstr("8 in flight                   100.000       75.000      104.412"));
  EXPECT_THAT(table, HasSubstr("50 requests/s                 100.000       75.000"));
  EXPECT_THAT(table, HasSubstr("\n\nhighest rate that meets p99<250ms, max<1s: 50 requests/s\n"));
  nlohmann::ordered_json none = Document();
  none["search"]["rate"] = 0;
  EXPECT_THAT(SavedTable(none), HasSubstr("max<1s: none of the rates tried\n"));
}

TEST(SavedReportTest, ComparesStepsOfTheSameLoad) {
  nlohmann::ordered_json other = Document();
  other["steps"][1]["latency_ms"]["p99"] = 150.0;
  other["steps"][2]["load"]["rate"] = 76;
  const std::string table = ComparisonTable(Document(), other);
  EXPECT_THAT(table, HasSubstr("50 requests/s            p99 ms            300.000      150.000  x "
                               "0.500\n"));
  EXPECT_THAT(table, testing::Not(HasSubstr("75 requests/s")));
  other["steps"].clear();
  other.erase("search");
  EXPECT_EQ(ComparisonTable(Document(), other), "The reports have no step with the same load.\n");
}

TEST(SavedReportTest, ComparesTheRatesOfTwoSearchesForTheSameObjectives) {
  nlohmann::ordered_json other = Document();
  other["search"]["rate"] = 60;
  EXPECT_THAT(ComparisonTable(Document(), other),
              HasSubstr("highest rate             requests/s         50.000       60.000  x "
                        "1.200\n"));
  other["search"]["objectives"] = {"p99<1s"};
  EXPECT_THAT(ComparisonTable(Document(), other), testing::Not(HasSubstr("highest rate")));
}

TEST(SavedReportTest, ComparesTheSecondStepOfALoadWithTheSecond) {
  nlohmann::ordered_json a = Document();
  a["steps"][2]["load"]["rate"] = 50;
  nlohmann::ordered_json b = a;
  b["steps"][2]["latency_ms"]["p99"] = 600.0;
  EXPECT_THAT(ComparisonTable(a, b), HasSubstr("50 requests/s            p99 ms            300.000 "
                                               "     600.000  x 2.000\n"));
}

}  // namespace saved_report_test
}  // namespace attendant::client
