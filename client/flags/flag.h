// The tables that state the command line: its commands and their flags. The parser, the help and
// the shell's completion are derived from them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace attendant::client {

// The form of a flag's value, and how to parse it.
struct FlagKind {
  enum class Takes {
    kNothing,   // a switch
    kMaybeOne,  // `implied` without one
    kOne,
    kRepeated,  // one, and the flag may be given again
    kList,      // one or several
  };
  Takes takes = Takes::kOne;
  std::string expected = {};              // for errors: "an integer of 0..6"
  std::string bounds = {};                // for the help: "0..6"; empty: not worth a mention
  std::string initial = {};               // without the flag, for the help; empty: as `bounds`
  std::string implied = {};               // for kMaybeOne
  std::vector<std::string> choices = {};  // the only texts allowed; empty: `read` decides
  // Stores a value; returns false if the text is invalid. Called for each text in turn.
  std::function<bool(const std::string& text)> read = {};
};

struct Flag {
  const char* name;         // "--layer", or "HANDLE" of an argument that no flag precedes
  const char* placeholder;  // "INDEX"; empty: the choices. The shell completes FILE by file names
  const char* help;         // without bounds, default and relations, which are added to it
  FlagKind kind;
  const char* needs = "";     // flags without which this one is refused: "--cert --key"
  const char* excludes = "";  // flags with which this one is refused
  bool required = false;
  const char* group = "";  // heading in the help
};

using Flags = std::vector<Flag>;

// Appends rows under a heading.
void Append(const char* group, Flags rows, Flags& flags);

// Returns the names in `needs` or `excludes`.
std::vector<std::string> NamesIn(const char* names);

struct CommandTable {
  void Add(const char* group, Flags rows) { Append(group, std::move(rows), flags); }

  const char* heading;   // in the list of commands
  const char* name;      // "attend"
  const char* summary;   // one line, which the command's own help begins with
  const char* details;   // sentences that follow it there; may be empty
  const char* examples;  // lines for a shell
  Flags flags = {};
  const char* instead = "";  // follows the error for an argument that belongs to no flag
};

struct ProgramTable {
  Flags common;  // may precede the name of the command, or follow it
  std::vector<CommandTable> commands;
};

}  // namespace attendant::client
