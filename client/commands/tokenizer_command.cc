#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/commands/commands.h"
#include "client/files/file_bytes.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {
namespace {

// In the order of their keys, which a map of the protocol does not have.
template <class Map>
auto Sorted(const Map& map) {
  return std::map<std::string, typename Map::mapped_type>(map.begin(), map.end());
}

template <class Map>
JsonValue Object(const Map& map) {
  const auto sorted = Sorted(map);
  return JsonValue::Object({sorted.begin(), sorted.end()});
}

JsonValue TokenizerJson(const TokenizerInfo& tokenizer) {
  return {
      {"tokenizer_json_bytes", tokenizer.tokenizer_json().size()},
      {"max_sequence_length", tokenizer.max_sequence_length()},
      {"lower_case", tokenizer.lower_case()},
      {"prompts", Object(tokenizer.prompts())},
      {"default_prompt", tokenizer.default_prompt()},
      {"labels", std::vector<std::string>(tokenizer.labels().begin(), tokenizer.labels().end())},
      {"special_ids", Object(tokenizer.special_ids())},
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
        << (name == tokenizer.default_prompt() ? " (default)" : "") << ": "
        << JsonValue(prompt).ToText() << "\n";
  }
  if (!tokenizer.labels().empty()) {
    out << "labels                   " << absl::StrJoin(tokenizer.labels(), ", ") << "\n";
  }
  for (const auto& [role, id] : Sorted(tokenizer.special_ids())) {
    out << "special token            " << role << " " << id << "\n";
  }
}

class TokenizerCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  std::string name_;
  std::string output_;
};

CommandTable TokenizerCommand::Table() {
  CommandTable table = {"Server", "tokenizer", "Show a model's tokenizer and save tokenizer.json",
                        "Shows the longest sequence, prompts, labels and special tokens of a model "
                        "whose directory has a tokenizer.json.",
                        "attendant-client tokenizer minilm --output tokenizer.json"};
  table.Add("Arguments", {{"NAME", "", "The model", TextKind(name_, "the server's only one")}});
  table.Add("Output",
            {{"--output", "FILE", "Write tokenizer.json to this file", TextKind(output_)}});
  return table;
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
    PrintJson(session, TokenizerJson(*tokenizer));
  } else {
    Print(session.out, *tokenizer);
  }
  return kSucceeded;
}

}  // namespace

std::unique_ptr<Command> MakeTokenizerCommand() { return std::make_unique<TokenizerCommand>(); }

}  // namespace attendant::client
