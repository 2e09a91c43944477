#include "client/inspect/inspection_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/inspect/inspection_json.h"
#include "client/inspect/page_text.h"

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

std::string ToHtml(const Inspection& inspection) {
  const std::string page = kPageText;
  const size_t at = page.find(kPageDataMark);
  return absl::StrCat(page.substr(0, at), ForScript(ToJson(inspection, MapFormat::kBytes)),
                      page.substr(at + sizeof(kPageDataMark) - 1));
}

}  // namespace attendant::client
