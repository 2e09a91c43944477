// Completion of command lines by bash, for the programs of both sides.
#pragma once

#include <string>
#include <vector>

namespace attendant::proto {

// The candidates for a word.
struct CompletionValue {
  enum class Kind { kNone, kAny, kChoice, kFile } kind = Kind::kNone;
  std::vector<std::string> choices = {};
};

struct CompletionFlag {
  std::string name;  // "--output"
  CompletionValue value;
};

struct CompletionCommand {
  std::string name;                   // empty: no command has been typed yet
  std::vector<CompletionFlag> flags;  // that may be typed there
  CompletionValue argument;           // a word that is neither a flag nor the value of one
};

// Returns a script for bash 4 and later that completes the arguments of a program. Names and
// choices must be words that need no quotes in a shell.
std::string BashCompletion(const std::string& program,
                           const std::vector<CompletionCommand>& commands);

}  // namespace attendant::proto
