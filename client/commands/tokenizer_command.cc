#include "client/commands/tokenizer_command.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/files/file_bytes.h"

namespace attendant::client {
namespace {

// In the order of their keys, which a map of the protocol does not have.
template <class Map>
auto Sorted(const Map& map) {
  return std::map<std::string, typename Map::mapped_type>(map.begin(), map.end());
}

Json ToJson(const TokenizerInfo& tokenizer) {
  return {
      {"tokenizer_json_bytes", tokenizer.tokenizer_json().size()},
      {"max_sequence_length", tokenizer.max_sequence_length()},
      {"lower_case", tokenizer.lower_case()},
      {"prompts", Sorted(tokenizer.prompts())},
      {"default_prompt", tokenizer.default_prompt()},
      {"labels", std::vector<std::string>(tokenizer.labels().begin(), tokenizer.labels().end())},
      {"special_ids", Sorted(tokenizer.special_ids())},
      {"model_version", tokenizer.model_version()}};
}

void Print(std::ostream& out, const TokenizerInfo& tokenizer) {
  const int64_t longest = tokenizer.max_sequence_length();
  out << "tokenizer.json           " << tokenizer.tokenizer_json().size() << " bytes\n"
      << "longest sequence         " << (longest == 0 ? "any" : absl::StrCat(longest, " tokens"))
      << "\n"
      << "lower case               " << (tokenizer.lower_case() ? "yes" : "no") << "\n";
  for (const auto& [name, prompt] : Sorted(tokenizer.prompts())) {
    out << "prompt                   " << name
        << (name == tokenizer.default_prompt() ? " (default)" : "") << ": " << Json(prompt).dump()
        << "\n";
  }
  if (!tokenizer.labels().empty()) {
    out << "labels                   " << absl::StrJoin(tokenizer.labels(), ", ") << "\n";
  }
  for (const auto& [role, id] : Sorted(tokenizer.special_ids())) {
    out << "special token            " << role << " " << id << "\n";
  }
}

}  // namespace

CLI::App* TokenizerCommand::AddTo(CLI::App& app) {
  CLI::App* tokenizer = app.add_subcommand(
      "tokenizer",
      "Shows what turns text into token ids for a model, and saves its tokenizer.json");
  tokenizer->add_option("name", name_, "Name of the model; default: the server's only one");
  tokenizer->add_option("--output", output_, "Write tokenizer.json to this file")
      ->type_name("FILE");
  return tokenizer;
}

ExitCode TokenizerCommand::Run(Session& session) {
  const absl::StatusOr<TokenizerInfo> tokenizer =
      session.Connect().GetTokenizer(name_, session.call);
  if (!tokenizer.ok()) return ReportServerError(session, tokenizer.status());
  if (!output_.empty()) {
    const absl::Status written = WriteFile(output_, tokenizer->tokenizer_json(), "");
    if (!written.ok()) return ReportBadUsage(session, written);
  }
  if (session.json) {
    PrintJson(session, ToJson(*tokenizer));
  } else {
    Print(session.out, *tokenizer);
  }
  return kSucceeded;
}

}  // namespace attendant::client
