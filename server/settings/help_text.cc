#include <string>

#include "absl/strings/str_cat.h"
#include "server/settings/settings.h"
#include "server/settings/settings_table.h"

namespace attendant::server {
namespace {

// Appends `text`, wrapped to lines of at most 100 columns and indented by six spaces.
void AppendWrapped(const std::string& text, std::string& out) {
  constexpr size_t kColumns = 94;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.size();
    if (end - begin > kColumns) {
      end = text.rfind(' ', begin + kColumns);
      if (end == text.npos || end <= begin) end = begin + kColumns;
    }
    absl::StrAppend(&out, "      ", text.substr(begin, end - begin), "\n");
    begin = end + (end < text.size() && text[end] == ' ' ? 1 : 0);
  }
}

}  // namespace

std::string HelpText() {
  std::string text =
      "attendant-server: serves transformer encoder layers over gRPC and HTTP.\n\n"
      "Usage: attendant-server [--model NAME=SOURCE]... [flags]\n"
      "       attendant-server --pull ORG/REPO[@REVISION] [flags]\n"
      "       attendant-server --describe SOURCE[,key=value...] [--json] [flags]\n\n"
      "A flag overrides its environment variable, which overrides the config file, which overrides "
      "the default.\n\n"
      "  --config FILE    ATTENDANT_CONFIG\n"
      "      Read settings from a file with one per line, such as `port = 8001`; names are the "
      "flags "
      "without\n      dashes. Lines that begin with # or ; are comments.\n"
      "  --pull ORG/REPO[@REVISION]\n"
      "      Download a repository of the Hugging Face Hub into --model-cache, print its "
      "directory, and exit.\n"
      "  --describe SOURCE[,key=value...]\n"
      "      Describe the model, the use of every tensor in its files, and its memory and "
      "operations; list all\n      reasons why a server with the other settings would refuse it; "
      "then exit.\n      Exit codes: 0 it would be served, 1 it would be refused, 2 invalid "
      "settings.\n"
      "  --json           With --describe: print one JSON document.\n"
      "  --ranks          With --describe: also print how many singular values hold 90 % of "
      "W_Q^T W_K, for each\n                   head and for all heads together; takes seconds.\n"
      "  --help           Print this help and exit.\n"
      "  --version        Print the versions of the server and of oneDNN and the instruction set, "
      "and exit.\n"
      "  --completion bash\n"
      "      Print a script that completes flags in bash, and exit: source <(attendant-server "
      "--completion bash)\n";
  std::string group;
  const Settings defaults;
  for (const SettingRow& row : SettingsTable()) {
    if (row.group != group) absl::StrAppend(&text, "\n", row.group, "\n");
    group = row.group;
    absl::StrAppend(&text, "  --", row.name, " ", row.placeholder, "    ", VariableName(row.name),
                    "\n");
    AppendWrapped(row.help, text);
    const std::string value = row.kind.show(defaults);
    AppendWrapped(
        absl::StrCat("Default ", value.empty() ? "none" : value, "; ", row.kind.allowed, "."),
        text);
  }
  return text;
}

}  // namespace attendant::server
