#include "client/inspect/inspection_page.h"

#include "absl/strings/str_cat.h"
#include "client/inspect/inspection_json.h"
#include "client/inspect/page_text.h"

namespace attendant::client {
std::string ToHtml(const Inspection& inspection) {
  const std::string page = kPageText;
  const size_t at = page.find(kPageDataMark);
  return absl::StrCat(page.substr(0, at), ToJson(inspection, MapFormat::kBytes).ToScript(),
                      page.substr(at + sizeof(kPageDataMark) - 1));
}

}  // namespace attendant::client
