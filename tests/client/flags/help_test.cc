#include "client/flags/help.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "tests/client/flags/some_program.h"

namespace attendant::client {
namespace help_test {

using testing::HasSubstr;
using testing::StartsWith;

TEST(HelpTest, OfACommandHasItsFlagsAndTheCommonOnesByGroup) {
  SomeValues values;
  const ProgramTable program = SomeProgram(values);
  EXPECT_THAT(CommandHelp(program, program.commands[0], 60),
              StartsWith("Usage: attendant-client paint [FLAGS]\n"
                         "\n"
                         "Paint a wall. It dries.\n"
                         "\n"
                         "Wall\n"
                         "  --name NAME             Whose wall (default: nobody's)\n"
                         "  --count COUNT           Walls (1..9; default: 2)\n"
                         "  --limit LITRES          Paint (at least 1)\n"
                         "  --style plain|dots      Pattern (default: plain)\n"
                         "  --shade [light|dark]    Shade\n"
                         "  --sizes N,...           Sizes (requires --name)\n"
                         "  --rule RULE             Rules (repeatable)\n"
                         "\n"
                         "Output\n"
                         "  --loud                  Say it (not with --name)\n"
                         "  --json                  Print JSON\n"
                         "\n"
                         "Connection\n"
                         "  --pause DURATION        Wait (default: 1m30s)\n"
                         "\n"
                         "Exit codes\n"));
  EXPECT_THAT(CommandHelp(program, program.commands[0], 60),
              HasSubstr("\nExample\n  paint --count 3\n"));
  EXPECT_THAT(CommandHelp(program, program.commands[1], 60),
              StartsWith("Usage: attendant-client mix FILE... [FLAGS]\n\nMix colours.\n\n"
                         "Arguments\n"
                         "  FILE...                 Colours (required)\n"));
}

TEST(HelpTest, OfTheProgramHasTheCommandsAndTheCommonFlags) {
  SomeValues values;
  EXPECT_THAT(ProgramHelp(SomeProgram(values), 80),
              HasSubstr("\n\nColours\n"
                        "  paint           Paint a wall\n"
                        "  mix             Mix colours\n"
                        "\n"
                        "Output\n"
                        "  --json                  Print JSON\n"));
}

TEST(HelpTest, WrapsToTheWidth) {
  SomeValues values;
  ProgramTable program = SomeProgram(values);
  CommandTable& paint = program.commands[0];
  const std::string word(50, 'x');
  const std::string help = word + " y z";
  paint.Add("Long", {{"--a-flag-with-a-long-name", "VALUE", help.c_str(), TextKind(values.name)}});
  EXPECT_THAT(CommandHelp(program, paint, 60),
              HasSubstr("  --a-flag-with-a-long-name VALUE\n" + std::string(26, ' ') + word + "\n" +
                        std::string(26, ' ') + "y z\n"));
  for (const size_t columns : {60, 72, 100}) {
    const std::string summary(columns - 1, 's');
    paint.summary = summary.c_str();
    paint.details = "aa bb";
    EXPECT_THAT(CommandHelp(program, paint, columns), HasSubstr("\n" + summary + ".\naa bb\n"));
  }
}

// A terminal of 97 columns.
class HelpColumnsTest : public testing::Test {
 protected:
  HelpColumnsTest() {
    unsetenv("COLUMNS");
    EXPECT_EQ(grantpt(master_), 0);
    EXPECT_EQ(unlockpt(master_), 0);
    terminal_ = open(ptsname(master_), O_RDWR | O_NOCTTY);
    Resize(97);
  }
  ~HelpColumnsTest() override {
    unsetenv("COLUMNS");
    close(terminal_);
    close(master_);
  }

  void Resize(unsigned short columns) const {
    winsize size = {};
    size.ws_col = columns;
    EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }

  const int master_ = posix_openpt(O_RDWR | O_NOCTTY);
  int terminal_ = -1;
};

TEST_F(HelpColumnsTest, AreTheWidthOfTheTerminal) {
  EXPECT_EQ(HelpColumns(terminal_), 97u);
  Resize(300);
  EXPECT_EQ(HelpColumns(terminal_), 100u);
  Resize(10);
  EXPECT_EQ(HelpColumns(terminal_), 40u);
  Resize(0);  // unknown
  EXPECT_EQ(HelpColumns(terminal_), 80u);
}

TEST_F(HelpColumnsTest, AreThoseOfTheVariableIfItIsSet) {
  setenv("COLUMNS", "66", 1);
  EXPECT_EQ(HelpColumns(terminal_), 66u);
  setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(HelpColumns(terminal_), 97u);
}

TEST_F(HelpColumnsTest, Are80WithoutATerminal) {
  setenv("COLUMNS", "66", 1);
  const int file = open("/dev/null", O_WRONLY);
  EXPECT_EQ(HelpColumns(file), 80u);
  close(file);
}

}  // namespace help_test
}  // namespace attendant::client
