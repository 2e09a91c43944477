#include "engine/checkpoint/late_interaction/stanford_colbert.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"

namespace attendant {
namespace {

constexpr char kArchitecture[] = "HF_ColBERT";
constexpr int64_t kQueryLength = 32;

}  // namespace

bool IsStanfordColbert(const std::string& folder) {
  const Json config = ReadObjectOrEmpty(absl::StrCat(folder, "/config.json"));
  const Json found = config.value("architectures", Json());
  return found.is_array() && absl::c_linear_search(found, kArchitecture);
}

absl::StatusOr<StanfordSettings> ReadStanfordColbert(const std::string& folder) {
  StanfordSettings read;
  const auto read_all = [&](ConfigReader& config) {
    read.query_prefix = absl::StrCat(config.Text({"query_token_id"}, "[unused0]"), " ");
    read.document_prefix = absl::StrCat(config.Text({"doc_token_id"}, "[unused1]"), " ");
    if (config.Has({"doc_maxlen"})) {
      read.lengths.document = config.Integer({"doc_maxlen"}, TextLengthRange());
    }
    TextLengths::Expansion expansion;
    expansion.length = config.Integer({"query_maxlen"}, TextLengthRange(), kQueryLength);
    expansion.attends = config.Boolean({"attend_to_mask_tokens"}, false);
    read.lengths.expansion.emplace(std::move(expansion));
    constexpr Named<bool> kSimilarities[] = {{"cosine", true}};
    config.Choice<bool>({"similarity"}, kSimilarities, true);
    constexpr Named<bool> kInteractions[] = {{"colbert", true}};
    config.Choice<bool>({"interaction"}, kInteractions, true);
  };
  RETURN_IF_ERROR(ReadConfigOrDefaults(absl::StrCat(folder, "/", kStanfordMetadata), read_all));
  return read;
}

}  // namespace attendant
