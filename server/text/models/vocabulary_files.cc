#include "server/text/models/vocabulary_files.h"

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/text/base/items.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/base/unicode.h"

namespace attendant::text {
namespace {

absl::Status CheckUtf8(absl::string_view text, absl::string_view file) {
  const size_t valid = ValidPrefix(text);
  if (valid == text.size()) return absl::OkStatus();
  return Unexpected(file, "UTF-8", absl::StrCat("something else at byte ", valid));
}

// Returns a line without trailing whitespace of any script. The original drops it too.
absl::string_view WithoutTrailingSpace(absl::string_view line) {
  const std::u32string codes = ToCodes(line);
  size_t size = line.size();
  for (auto code = codes.rbegin(); code != codes.rend(); ++code) {
    if (!HasFlag(CodeFlags(), *code, kWhitespace)) break;
    size -= Utf8Size(*code);
  }
  return line.substr(0, size);
}

}  // namespace

absl::StatusOr<std::string> WordPieceJson(absl::string_view vocab_txt) {
  RETURN_IF_ERROR(CheckUtf8(vocab_txt, "vocab.txt"));
  std::vector<absl::string_view> lines = absl::StrSplit(vocab_txt, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (absl::string_view& line : lines) line = WithoutTrailingSpace(line);
  absl::flat_hash_map<absl::string_view, size_t> last;  // line of a token that is on several
  for (size_t id = 0; id < lines.size(); ++id) last[lines[id]] = id;
  std::string vocabulary;
  for (size_t id = 0; id < lines.size(); ++id) {
    const absl::string_view token = lines[id];
    if (last[token] != id) continue;  // an empty line is a token, too
    absl::StrAppend(&vocabulary, vocabulary.empty() ? "" : ",", QuoteJson(token), ":", id);
  }
  return absl::StrCat(R"({"model":{"type":"WordPiece","vocab":{)", vocabulary, "}}}");
}

absl::StatusOr<std::string> BpeJson(absl::string_view vocab_json, absl::string_view merges_txt) {
  ASSIGN_OR_RETURN(const auto vocabulary, JsonTree::Parse(vocab_json, "vocab.json"));
  if (!vocabulary->root().is_object()) {
    return Unexpected("vocab.json", "an object", vocabulary->root());
  }
  RETURN_IF_ERROR(CheckUtf8(merges_txt, "merges.txt"));
  std::string merges;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(merges_txt, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty() || absl::StartsWith(line, "#version")) continue;
    const std::vector<absl::string_view> pair = absl::StrSplit(line, ' ');
    if (pair.size() != 2) {
      return Unexpected("merges.txt", "two tokens on a line",
                        absl::StrCat(pair.size(), " on line ", number));
    }
    absl::StrAppend(&merges, merges.empty() ? "[" : ",[", QuoteJson(pair[0]), ",",
                    QuoteJson(pair[1]), "]");
  }
  return absl::StrCat(R"({"model":{"type":"BPE","vocab":)", vocab_json, R"(,"merges":[)", merges,
                      "]}}");
}

}  // namespace attendant::text
