// Runs every fuzz target over its committed corpus, without a fuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace attendant {
namespace replay_test {

std::vector<std::filesystem::path> CorpusOf(const FuzzTarget& target) {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(ATTENDANT_FUZZ_CORPUS) / target.name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FuzzReplayTest : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzReplayTest, NothingIsWrongWithTheCorpus) {
  const std::vector<std::filesystem::path> files = CorpusOf(GetParam());
  EXPECT_GE(files.size(), 5u);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file);
    EXPECT_EQ(GetParam().run(ReadFile(file)), "");
  }
}

TEST_P(FuzzReplayTest, EmptyInputIsInput) { EXPECT_EQ(GetParam().run(""), ""); }

std::string NameOfTarget(const ::testing::TestParamInfo<FuzzTarget>& info) {
  std::string name = info.param.name;
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, FuzzReplayTest,
                         ::testing::ValuesIn(FuzzTargets().begin(), FuzzTargets().end()),
                         NameOfTarget);

}  // namespace replay_test
}  // namespace attendant
