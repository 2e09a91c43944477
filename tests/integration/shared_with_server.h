// Memory that a test shares with a library that is preloaded into the server which the test starts.
// The environment variable T::kVariable names the file that it is in.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace attendant::server {

// Maps the file. Null: it can't be mapped.
template <typename T>
T* MapFile(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  void* const mapped = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<T*>(mapped);
}

// For the library. Null: the variable is not set.
template <typename T>
T* MapFromEnvironment() {
  const char* const path = std::getenv(T::kVariable);
  return path == nullptr ? nullptr : MapFile<T>(path);
}

// For the test. The values are zero at first.
template <typename T>
class SharedWithServer {
 public:
  SharedWithServer() : path_(std::filesystem::temp_directory_path() / "attendant_shared_XXXXXX") {
    const int file = mkstemp(path_.data());
    if (file < 0 || ftruncate(file, sizeof(T)) != 0) std::abort();
    close(file);
    values_ = MapFile<T>(path_.c_str());
  }
  ~SharedWithServer() {
    munmap(values_, sizeof(T));
    std::remove(path_.c_str());
  }
  SharedWithServer(const SharedWithServer&) = delete;
  SharedWithServer& operator=(const SharedWithServer&) = delete;

  // The command that starts a server with `library`.
  std::vector<std::string> Launcher(const std::string& library) const {
    return {"env", "LD_PRELOAD=" + library, std::string(T::kVariable) + "=" + path_};
  }
  T* operator->() { return values_; }

 private:
  std::string path_;
  T* values_;
};

}  // namespace attendant::server
