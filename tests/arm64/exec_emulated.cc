// Preloaded into programs for arm64 under qemu-user, which does not see that a program executes
// another one: if that one is for arm64 too, such as the program itself in a death test, it
// executes it under the same emulator. EMULATOR_COMMAND has the emulator's command, one argument
// per line.
#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

bool IsForThisArchitecture(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  Elf64_Ehdr header = {};
  const bool read_all = read(file, &header, sizeof header) == sizeof header;
  close(file);
  return read_all && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_machine == EM_AARCH64;
}

std::vector<std::string> EmulatorWords() {
  std::vector<std::string> words;
  const char* rest = std::getenv("EMULATOR_COMMAND");
  while (rest != nullptr && *rest != '\0') {
    const char* const end = std::strchr(rest, '\n');
    words.push_back(end == nullptr ? std::string(rest) : std::string(rest, end));
    rest = end == nullptr ? nullptr : end + 1;
  }
  return words;
}

}  // namespace

extern "C" int execve(const char* path, char* const argv[], char* const envp[]) {
  std::vector<std::string> words = EmulatorWords();
  if (words.empty() || !IsForThisArchitecture(path)) {
    return static_cast<int>(syscall(SYS_execve, path, argv, envp));
  }
  words.push_back(path);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  for (char* const* argument = argv + 1; *argument != nullptr; ++argument) {
    arguments.push_back(*argument);
  }
  arguments.push_back(nullptr);
  return static_cast<int>(syscall(SYS_execve, words[0].c_str(), arguments.data(), envp));
}

extern "C" int execv(const char* path, char* const argv[]) { return execve(path, argv, environ); }
