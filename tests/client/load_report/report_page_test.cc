#include "client/load_report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/load_report/report_json.h"
#include "tests/client/load_report/some_report.h"

namespace attendant::client {
namespace report_page_test {

using ::testing::HasSubstr;
using ::testing::Not;

std::string DataOf(const std::string& page) {
  const std::string from = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(from) + from.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(LoadPageTest, CarriesOneReportOrTwo) {
  const nlohmann::ordered_json report = ReportJson(SomeReport());
  const auto one = nlohmann::ordered_json::parse(DataOf(LoadPage({{"", report}})));
  EXPECT_EQ(one["reports"].size(), 1u);
  EXPECT_EQ(one["reports"][0]["document"], report);
  const auto two = nlohmann::ordered_json::parse(
      DataOf(LoadPage({{"a.json", report}, {"b.json", ReportJson(SomeSearch())}})));
  EXPECT_EQ(two["reports"][1]["name"], "b.json");
  EXPECT_EQ(two["reports"][1]["document"]["search"]["rate"], 50.0);
}

// Or the last part of a second would look like a fall of the rate.
TEST(LoadPageTest, DrawsRatesByTheLengthOfEachSecond) {
  EXPECT_THAT(LoadPage({{"", ReportJson(SomeReport())}}),
              HasSubstr("const length = second.length_s"));
}

TEST(LoadPageTest, ComparesStepsOfTheSameLoadInTheirOrder) {
  EXPECT_THAT(LoadPage({{"", ReportJson(SomeReport())}}),
              HasSubstr("loadOf(one.step) === load)[seen[load]]"));
}

// Failed calls have no times in the server, so that all of theirs would be network time.
TEST(LoadPageTest, DividesTheTimeOfSuccessfulRequests) {
  EXPECT_THAT(LoadPage({{"", ReportJson(SomeReport())}}),
              HasSubstr("times.rest = Math.max(0, mean(step)"));
}

TEST(LoadPageTest, SaysThatTheTestWasInterrupted) {
  EXPECT_THAT(LoadPage({{"", ReportJson(SomeReport())}}),
              HasSubstr("if (report.document.interrupted)"));
}

TEST(LoadPageTest, NamesCannotLeaveTheData) {
  LoadReport report = SomeReport();
  report.plan[0].second = "</script><script>alert(\"&\")</script>\xff";
  const std::string page = LoadPage({{"", ReportJson(report)}});
  EXPECT_THAT(page, Not(HasSubstr("</script><script>alert")));
  EXPECT_THAT(DataOf(page), Not(HasSubstr("<")));
}

// The page has no address except the name of SVG's vocabulary, which nothing fetches, and a policy
// that forbids all requests.
TEST(LoadPageTest, AsksForNothingElse) {
  std::string page = LoadPage({{"", ReportJson(SomeReport())}});
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  const std::string vocabulary = "http://www.w3.org/2000/svg";
  page.erase(page.find(vocabulary), vocabulary.size());
  for (const char* reach : {"http:", "https:", "src=", "@import", "url(", "fetch(", "<link"}) {
    EXPECT_THAT(page, Not(HasSubstr(reach)));
  }
}

}  // namespace report_page_test
}  // namespace attendant::client
