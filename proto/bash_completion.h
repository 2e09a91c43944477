// Bash completion scripts for the server and the client.
#pragma once

#include <string>
#include <vector>

namespace attendant::proto {

// Candidates for a word.
struct CompletionValue {
  enum class Kind { kNone, kAny, kChoice, kFile } kind = Kind::kNone;
  std::vector<std::string> choices = {};
};

struct CompletionFlag {
  std::string name;  // "--output"
  CompletionValue value;
};

struct CompletionCommand {
  std::string name;                   // empty: before a command
  std::vector<CompletionFlag> flags;  // flags allowed in this place
  CompletionValue argument;           // a word that is neither a flag nor a flag's value
};

// Returns a script for bash 4 or later that completes the arguments of `program`. Names and choices
// must not need quotes in a shell.
std::string BashCompletion(const std::string& program,
                           const std::vector<CompletionCommand>& commands);

}  // namespace attendant::proto
