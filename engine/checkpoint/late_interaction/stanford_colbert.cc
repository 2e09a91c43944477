#include "engine/checkpoint/late_interaction/stanford_colbert.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

constexpr char kArchitecture[] = "HF_ColBERT";
constexpr int64_t kQueryLength = 32;

}  // namespace

bool IsStanfordColbert(const std::string& folder) {
  const absl::StatusOr<Json> json =
      ReadJsonFile(absl::StrCat(folder, "/config.json"), JsonLimits());
  if (!json.ok() || !json->is_object()) return false;
  const Json found = json->value("architectures", Json());
  if (!found.is_array()) return false;
  for (const Json& name : found) {
    if (name == kArchitecture) return true;
  }
  return false;
}

absl::StatusOr<StanfordSettings> ReadStanfordColbert(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kStanfordMetadata);
  absl::StatusOr<Json> json = Json::object();
  if (PathExists(path)) json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  StanfordSettings read;
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
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  return read;
}

}  // namespace attendant
