#include "tests/support/fake_hub.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace attendant::test_support {

FakeHub::FakeHub(const std::string& folder, const std::string& certificate,
                 const std::string& key) {
  std::vector<std::string> arguments = {ATTENDANT_PYTHON, ATTENDANT_FAKE_HUB, folder};
  if (!certificate.empty()) arguments.insert(arguments.end(), {certificate, key});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int commands[2], answers[2];
  EXPECT_EQ(pipe2(commands, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(answers, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, commands[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
  EXPECT_EQ(posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(commands[0]);
  close(answers[1]);
  commands_ = fdopen(commands[1], "w");
  answers_ = fdopen(answers[0], "r");
  endpoint_ = ReadLine();
  cdn_ = ReadLine();
  EXPECT_THAT(cdn_, ::testing::StartsWith("http"));
}

FakeHub::~FakeHub() {
  std::fclose(commands_);
  std::fclose(answers_);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string FakeHub::ReadLine() {
  std::string line;
  for (int c; (c = std::fgetc(answers_)) != EOF && c != '\n';) line += static_cast<char>(c);
  return line;
}

std::string FakeHub::Command(const std::string& name, const std::string& value) {
  std::fprintf(commands_, "{\"%s\": %s}\n", name.c_str(), value.c_str());
  std::fflush(commands_);
  std::string answer = ReadLine();
  EXPECT_NE(answer, "") << "fake_hub.py ended at " << name << " " << value;
  return answer;
}

void FakeHub::Set(const std::string& attributes) { Command("set", attributes); }
void FakeHub::Fail(const std::string& fault) { Command("fail", fault); }
void FakeHub::Release() { Command("release", "true"); }

std::vector<std::string> FakeHub::Requests() { return ValuesOf("request", ""); }

std::vector<std::string> FakeHub::ValuesOf(const std::string& key, const std::string& part) {
  const int count = std::stoi(Command("values", absl::StrCat("[\"", key, "\", \"", part, "\"]")));
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) values.push_back(ReadLine());
  return values;
}

}  // namespace attendant::test_support
