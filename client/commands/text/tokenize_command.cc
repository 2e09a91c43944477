#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/shared_flags.h"
#include "client/commands/text/text_commands.h"
#include "client/commands/text/text_input.h"
#include "client/commands/text/text_requests.h"

namespace attendant::client {
namespace {

class TokenizeCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  TokenizeRequest request_;
  TextInput input_;
};

CommandTable TokenizeCommand::Table() {
  CommandTable table = {"Texts", "tokenize", "Show the tokens of texts",
                        "Prints the id of each token, its spelling in the vocabulary, and its "
                        "position in the text, in characters from 0.",
                        "attendant-client tokenize \"hello world\"\n"
                        "attendant-client tokenize --file texts.txt --no-special-tokens --json"};
  table.Add("Input", input_.TextFlags("Text to tokenize"));
  table.Add("Input", {input_.PairsFlag()});
  table.Add("Input", input_.PromptFlags());
  table.Add("Input", {input_.TruncateFlag(),
                      {"--no-special-tokens", "", "Omit the special tokens added to a text",
                       SwitchKind(request_.omit_special_tokens)}});
  table.Add("Model", {ModelFlag(request_.model)});
  return table;
}

// Pads with spaces; the width is in characters.
std::string Padded(const std::string& text, size_t width) {
  const auto characters = static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
  return text + std::string(std::max(width, characters) - characters, ' ');
}

// Returns the part of the text that a token is of; nothing for an answer that does not fit.
std::string PartOf(const std::string& text, const TextTokens& tokens, size_t i) {
  const size_t begin = tokens.byte_begins[i], end = tokens.byte_ends[i];
  return begin < end && end <= text.size() ? text.substr(begin, end - begin) : "";
}

void Print(std::ostream& out, const Texts& texts, size_t index, const TextTokens& tokens) {
  out << (index > 0 ? "\n" : "") << Shortened(texts.texts[index], 100);
  if (!texts.pairs.empty()) out << " | " << Shortened(texts.pairs[index], 100);
  out << absl::StrFormat("\n%d tokens%s\n      ID  TOKEN           RANGE     TEXT\n",
                         tokens.ids.size(), tokens.truncated ? ", truncated" : "");
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const bool is_second = tokens.sources[i] == 1 && !texts.pairs.empty();
    const bool is_added = tokens.sources[i] > 1 || tokens.begins[i] == tokens.ends[i];
    const std::string place = is_added ? "" : absl::StrCat(tokens.begins[i], "..", tokens.ends[i]);
    const std::string part =
        is_added ? "" : PartOf((is_second ? texts.pairs : texts.texts)[index], tokens, i);
    std::string line = absl::StrFormat("%8d  ", tokens.ids[i]) +
                       Padded(Shortened(tokens.tokens[i], 30), 15) + " " + Padded(place, 9) + " " +
                       Shortened(part, 30);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

JsonValue ToJson(const Texts& texts, size_t index, const TextTokens& tokens) {
  std::vector<std::pair<std::string, JsonValue>> members = {{"text", texts.texts[index]}};
  if (!texts.pairs.empty()) members.emplace_back("text_pair", texts.pairs[index]);
  const std::pair<const char*, const std::vector<uint32_t>&> lists[] = {
      {"ids", tokens.ids},
      {"token_type_ids", tokens.token_type_ids},
      {"sources", tokens.sources},
      {"begins", tokens.begins},
      {"ends", tokens.ends},
      {"byte_begins", tokens.byte_begins},
      {"byte_ends", tokens.byte_ends}};
  for (const auto& [name, list] : lists) members.emplace_back(name, list);
  members.emplace_back("tokens", tokens.tokens);
  members.emplace_back("truncated", tokens.truncated);
  return JsonValue::Object(members);
}

ExitCode TokenizeCommand::Run(Session& session) {
  const absl::StatusOr<Texts> texts = input_.Read();
  if (!texts.ok()) return ReportBadUsage(session, texts.status());
  const Client client = session.Connect();
  const absl::StatusOr<ModelInfo> model = GetTextModel(client, request_.model, session.call);
  if (!model.ok()) return ReportServerError(session, model.status());
  TokenizeRequest request = request_;
  input_.SetOptions(*model, request);
  const absl::StatusOr<TokenizeResult> result =
      TokenizeTexts(client, std::move(request), *texts, *model, session.call);
  if (!result.ok()) return ReportServerError(session, result.status());
  std::vector<JsonValue> documents;
  for (size_t i = 0; i < result->texts.size(); ++i) {
    if (session.json) {
      documents.push_back(ToJson(*texts, i, result->texts[i]));
    } else {
      Print(session.out, *texts, i, result->texts[i]);
    }
  }
  if (session.json) {
    PrintJson(session, {{"texts", documents}, {"model_version", result->model_version}});
  }
  return kSucceeded;
}

}  // namespace

std::unique_ptr<Command> MakeTokenizeCommand() { return std::make_unique<TokenizeCommand>(); }

}  // namespace attendant::client
