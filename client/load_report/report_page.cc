#include "client/load_report/report_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/load_report/page_text.h"

namespace attendant::client {
namespace {

// Returns JSON that may stand in a <script>: nothing in it opens or closes a tag, not even the
// names, which come from a server.
std::string ForScript(const nlohmann::ordered_json& json) {
  const std::string text =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return absl::StrReplaceAll(text, {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

}  // namespace

std::string LoadPage(const std::vector<NamedReport>& reports) {
  nlohmann::ordered_json data = {{"reports", nlohmann::ordered_json::array()}};
  for (const NamedReport& report : reports) {
    data["reports"].push_back({{"name", report.name}, {"document", report.document}});
  }
  const std::string page = kLoadPageText;
  const size_t at = page.find(kLoadPageDataMark);
  return absl::StrCat(page.substr(0, at), ForScript(data),
                      page.substr(at + sizeof(kLoadPageDataMark) - 1));
}

}  // namespace attendant::client
