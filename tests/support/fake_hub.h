// FakeHub, a small Hugging Face Hub of local files (tests/support/fake_hub.py) as a child process.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace attendant::test_support {

// Serves FOLDER/ORG/REPO until it is destroyed. Not thread-safe.
class FakeHub {
 public:
  // With TLS if there is a certificate and a key, files in PEM.
  explicit FakeHub(const std::string& folder, const std::string& certificate = "",
                   const std::string& key = "");
  ~FakeHub();
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  const std::string& cdn() const { return cdn_; }

  // Sets what the attributes of that name in fake_hub.py hold: a JSON object.
  void Set(const std::string& attributes);
  // Adds something that goes wrong: a JSON object with the keys of Fault in fake_hub.py.
  void Fail(const std::string& fault);
  // Lets answers that are held go on.
  void Release();

  // Returns what was asked for so far: "hub GET /path", "cdn GET /path", …
  std::vector<std::string> Requests();
  // Returns one value of each request whose path contains `part`, such as its "range".
  std::vector<std::string> ValuesOf(const std::string& key, const std::string& part);

 private:
  std::string Command(const std::string& name, const std::string& value);
  std::string ReadLine();

  pid_t pid_ = -1;
  FILE* commands_ = nullptr;
  FILE* answers_ = nullptr;
  std::string endpoint_, cdn_;
};

}  // namespace attendant::test_support
