#include "client/load_report/report_page.h"

#include "absl/strings/str_cat.h"
#include "client/load_report/page_text.h"

namespace attendant::client {
std::string LoadPage(const std::vector<NamedReport>& reports) {
  std::vector<JsonValue> list;
  for (const NamedReport& report : reports) {
    list.push_back({{"name", report.name}, {"document", report.document}});
  }
  const std::string page = kLoadPageText;
  const size_t at = page.find(kLoadPageDataMark);
  return absl::StrCat(page.substr(0, at), JsonValue({{"reports", list}}).ToScript(),
                      page.substr(at + sizeof(kLoadPageDataMark) - 1));
}

}  // namespace attendant::client
