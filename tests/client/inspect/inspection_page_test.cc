#include "client/inspect/inspection_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace attendant::client {
namespace inspection_page_test {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

Inspection Named(const std::string& name) {
  Inspection inspection;
  inspection.model.set_name(name);
  inspection.cells = 8;
  inspection.sequences.emplace_back().positions = {0};
  return inspection;
}

TEST(InspectionPageTest, CarriesItsData) {
  const std::string page = ToHtml(Named("m"));
  const auto data =
      nlohmann::json::parse(Between(page, "<script type=\"application/json\" id=\"data\">", "<"));
  EXPECT_EQ(data["model"], "m");
  EXPECT_EQ(data["sequences"][0]["tokens"], 1);
}

TEST(InspectionPageTest, NamesCannotLeaveTheData) {
  const std::string name = "</script><script>alert(\"&\")</script>\xff";
  const std::string page = ToHtml(Named(name));
  EXPECT_THAT(page, Not(HasSubstr("alert(\"")));
  EXPECT_THAT(page, Not(HasSubstr("</script><script>alert")));
  const std::string data =
      Between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_EQ(nlohmann::json::parse(data)["model"],
            "</script><script>alert(\"&\")</script>\xef\xbf\xbd");
}

// The page has no address except the name of SVG's vocabulary, which nothing fetches, and a policy
// that forbids all requests.
TEST(InspectionPageTest, AsksForNothingElse) {
  std::string page = ToHtml(Named("m"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  const std::string vocabulary = "http://www.w3.org/2000/svg";
  page.erase(page.find(vocabulary), vocabulary.size());
  for (const char* reach : {"http:", "https:", "src=", "@import", "url(", "fetch(", "<link"}) {
    EXPECT_THAT(page, Not(HasSubstr(reach)));
  }
}

}  // namespace inspection_page_test
}  // namespace attendant::client
