// A command line for the tests of its parser and its help.
#pragma once

#include <string>
#include <vector>

#include "client/flags/flag_kinds.h"

namespace attendant::client {

// The values that the flags of SomeProgram write.
struct SomeValues {
  std::string name;
  int64_t count = 2;
  int limit = 0;
  std::string style = "plain";
  std::string shade;
  std::vector<int64_t> sizes;
  std::vector<std::string> rules;
  std::vector<std::string> files;
  bool loud = false;
  bool json = false;
  absl::Duration pause = absl::Seconds(90);
};

inline ProgramTable SomeProgram(SomeValues& values) {
  ProgramTable program;
  Append("Output", {{"--json", "", "Print JSON", SwitchKind(values.json)}}, program.common);
  Append("Connection", {{"--pause", "DURATION", "Wait", DurationKind(values.pause)}},
         program.common);
  CommandTable paint = {"Colours", "paint", "Paint a wall", "It dries.", "paint --count 3"};
  FlagKind shade = ChoiceKind<std::string>(values.shade, {{"light", "l"}, {"dark", "d"}});
  shade.takes = FlagKind::Takes::kMaybeOne;
  shade.implied = "dark";
  paint.Add("Wall",
            {{"--name", "NAME", "Whose wall", TextKind(values.name, "nobody's")},
             {"--count", "COUNT", "Walls", IntegerKind<int64_t>(values.count, 1, 9)},
             {"--limit", "LITRES", "Paint", IntegerKind(values.limit, 1)},
             {"--style", "", "Pattern",
              ChoiceKind<std::string>(values.style, {{"plain", "plain"}, {"dots", "dots"}})},
             {"--shade", "", "Shade", std::move(shade)},
             {"--sizes", "N,...", "Sizes", ListKind(values.sizes), "--name"},
             {"--rule", "RULE", "Rules", TextsKind(values.rules)}});
  paint.Add("Output", {{"--loud", "", "Say it", SwitchKind(values.loud), "", "--name"}});
  CommandTable mix = {"Colours", "mix", "Mix colours", "", "mix red blue"};
  FlagKind files = TextsKind(values.files);
  files.takes = FlagKind::Takes::kList;
  mix.Add("Arguments", {{.name = "FILE",
                         .placeholder = "",
                         .help = "Colours",
                         .kind = std::move(files),
                         .required = true}});
  program.commands = {paint, mix};
  return program;
}

}  // namespace attendant::client
