#include "client/flags/read_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/flags/some_program.h"

namespace attendant::client {
namespace read_arguments_test {

using testing::ElementsAre;

class ReadArgumentsTest : public testing::Test {
 protected:
  std::string Read(const std::vector<std::string>& arguments) {
    values_ = SomeValues();
    const ProgramTable program = SomeProgram(values_);
    const ParsedArguments parsed = ParseArguments(program, arguments);
    command_ = parsed.command == nullptr ? "" : parsed.command->name;
    return std::string(ReadArguments(program, parsed).message());
  }

  SomeValues values_;
  std::string command_;
};

TEST_F(ReadArgumentsTest, StoresTheValueOfEachFlag) {
  EXPECT_EQ(Read({"paint", "--name", "n", "--count=3", "--limit", "4", "--style", "dots", "--sizes",
                  "1,-2", "--rule", "a", "--rule", "b", "--pause", "250ms"}),
            "");
  EXPECT_EQ(command_, "paint");
  EXPECT_EQ(values_.name, "n");
  EXPECT_EQ(values_.count, 3);
  EXPECT_EQ(values_.limit, 4);
  EXPECT_EQ(values_.style, "dots");
  EXPECT_THAT(values_.sizes, ElementsAre(1, -2));
  EXPECT_THAT(values_.rules, ElementsAre("a", "b"));
  EXPECT_EQ(values_.pause, absl::Milliseconds(250));
  EXPECT_FALSE(values_.loud);
}

TEST_F(ReadArgumentsTest, CommonFlagsStandBeforeOrAfterTheCommand) {
  EXPECT_EQ(Read({"--pause", "2", "--json", "paint", "--loud"}), "");
  EXPECT_EQ(values_.pause, absl::Seconds(2));
  EXPECT_TRUE(values_.json && values_.loud);
  EXPECT_EQ(Read({"mix", "a", "--json", "b", "--pause=3s"}), "");
  EXPECT_THAT(values_.files, ElementsAre("a", "b"));
  EXPECT_TRUE(values_.json);
  EXPECT_EQ(Read({"mix", "--", "--json"}), "");
  EXPECT_THAT(values_.files, ElementsAre("--json"));
  EXPECT_EQ(Read({"paint", "--json=false", "--loud", "--loud"}), "");
  EXPECT_TRUE(!values_.json && values_.loud);
}

TEST_F(ReadArgumentsTest, AValueMayBeImplied) {
  EXPECT_EQ(Read({"paint", "--shade", "--loud"}), "");
  EXPECT_EQ(values_.shade, "d");
  EXPECT_EQ(Read({"paint", "--shade", "light"}), "");
  EXPECT_EQ(values_.shade, "l");
  EXPECT_EQ(Read({"paint"}), "");
  EXPECT_EQ(values_.shade, "");
}

TEST_F(ReadArgumentsTest, ListsMayBeSeveralWords) {
  EXPECT_EQ(Read({"paint", "--name", "n", "--sizes", "1", "2,3", "--sizes", "4"}), "");
  EXPECT_THAT(values_.sizes, ElementsAre(1, 2, 3, 4));
}

TEST_F(ReadArgumentsTest, SaysWhatIsWrongWithAValue) {
  const std::string see = "; see attendant-client paint --help";
  EXPECT_EQ(Read({"paint", "--count", "10"}),
            "--count: expected an integer of 1..9; got \"10\"" + see);
  EXPECT_EQ(Read({"paint", "--count", "two"}),
            "--count: expected an integer of 1..9; got \"two\"" + see);
  EXPECT_EQ(Read({"paint", "--limit", "0"}),
            "--limit: expected an integer of at least 1; got \"0\"" + see);
  EXPECT_EQ(Read({"paint", "--limit", "99999999999"}),
            "--limit: expected an integer of at least 1; got \"99999999999\"" + see);
  EXPECT_EQ(Read({"paint", "--style", "odd"}),
            "--style: expected one of plain, dots; got \"odd\"" + see);
  EXPECT_EQ(Read({"paint", "--name", "n", "--sizes", "1,,2"}),
            "--sizes: expected integers separated by commas; got \"1,,2\"" + see);
  EXPECT_EQ(Read({"paint", "--pause", "soon"}),
            "--pause: expected a duration of at least 0, such as 250ms or 30s; got \"soon\"" + see);
  EXPECT_EQ(Read({"paint", "--pause=-1s"}),
            "--pause: expected a duration of at least 0, such as 250ms or 30s; got \"-1s\"" + see);
  EXPECT_EQ(Read({"paint", "--pause", "NaN"}),
            "--pause: expected a duration of at least 0, such as 250ms or 30s; got \"NaN\"" + see);
  EXPECT_EQ(Read({"paint", "--loud=very"}), "--loud: expected no value; got \"very\"" + see);
  EXPECT_EQ(Read({"paint", "--name", "a", "--name", "b"}),
            "--name: expected one value; got 2" + see);
}

TEST_F(ReadArgumentsTest, SaysWhichValueIsMissing) {
  EXPECT_EQ(Read({"paint", "--name"}),
            "--name: expected NAME; got nothing; see attendant-client paint --help");
  EXPECT_EQ(Read({"paint", "--loud", "--count"}),
            "--count: expected an integer of 1..9; got nothing; see attendant-client paint --help");
  EXPECT_EQ(Read({"--pause"}),
            "--pause: expected a duration of at least 0, such as 250ms or 30s; got nothing; see "
            "attendant-client "
            "--help");
  EXPECT_EQ(Read({"mix"}), "expected FILE; got nothing; see attendant-client mix --help");
}

// A flag takes the next word for its value, whatever it is.
TEST_F(ReadArgumentsTest, AFlagIsNoValueOfAnother) {
  EXPECT_EQ(Read({"paint", "--count", "--name", "n"}),
            "--count: expected an integer of 1..9; got the flag --name; see attendant-client paint "
            "--help");
  EXPECT_EQ(Read({"paint", "--name", "--pause=3"}),
            "--name: expected NAME; got the flag --pause; see attendant-client paint --help");
  EXPECT_EQ(Read({"paint", "--name", "--wall"}), "");
  EXPECT_EQ(values_.name, "--wall");
}

TEST_F(ReadArgumentsTest, ChecksWhichFlagsGoTogether) {
  EXPECT_EQ(Read({"paint", "--sizes", "1"}),
            "--sizes: requires --name; see attendant-client paint --help");
  EXPECT_EQ(Read({"paint", "--loud", "--name", "n"}),
            "--loud: cannot be combined with --name; see attendant-client paint --help");
}

TEST_F(ReadArgumentsTest, SuggestsTheNearestName) {
  EXPECT_EQ(Read({"pant", "--count", "2"}),
            "unknown command \"pant\"; did you mean paint?; see attendant-client --help");
  EXPECT_EQ(Read({"sculpture"}), "unknown command \"sculpture\"; see attendant-client --help");
  EXPECT_EQ(Read({"paint", "--cuont=3"}),
            "unknown flag --cuont; did you mean --count?; see attendant-client paint --help");
  EXPECT_EQ(Read({"paint", "--jsn"}),
            "unknown flag --jsn; did you mean --json?; see attendant-client paint --help");
  EXPECT_EQ(Read({"mix", "a", "--cuont"}), "unknown flag --cuont; see attendant-client mix --help");
  EXPECT_EQ(Read({"-x"}), "unknown flag -x; see attendant-client --help");
  EXPECT_EQ(Read({}), "expected a command; got none; see attendant-client --help");
}

TEST_F(ReadArgumentsTest, NamesUnknownArgumentsInTheirOrder) {
  EXPECT_EQ(Read({"paint", "wall", "--cuont", "3", "floor"}),
            "unexpected argument \"wall\"; unexpected after it: --cuont 3 floor; see "
            "attendant-client paint --help");
  EXPECT_EQ(Read({"--count", "3", "paint"}),
            "--count: expected after the command paint; unexpected after it: 3; see "
            "attendant-client paint --help");
}

// So that an error is printed as JSON if that was asked for.
TEST_F(ReadArgumentsTest, CommonFlagsAreReadBeforeTheRest) {
  EXPECT_NE(Read({"--json", "pant"}), "");
  EXPECT_TRUE(values_.json);
}

}  // namespace read_arguments_test
}  // namespace attendant::client
