// HubTest, a Hub with one small model and an empty cache.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/hub/pull_model.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/support/fake_hub.h"

namespace attendant::server {

class HubTest : public ::testing::Test {
 protected:
  HubTest() : HubTest("", "") {}

  // With a Hub that has a certificate, files in PEM.
  HubTest(const std::string& certificate, const std::string& key)
      : hub_(files_.path(), certificate, key) {
    for (const char* proxy : {"http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"}) {
      unsetenv(proxy);
    }
    options_.endpoint = hub_.endpoint();
    options_.cache = cache_.path();
    options_.retry_delay = absl::Milliseconds(1);
    files_.Write("org/tiny/config.json", TinyBertConfig());
    files_.Write("org/tiny/model.safetensors", weights_);
    files_.Write("org/tiny/tokenizer.json", R"({"added_tokens": []})");
    files_.Write("org/tiny/pytorch_model.bin", "not wanted");
    files_.Write("org/tiny/README.md", "not wanted");
  }

  absl::StatusOr<PulledModel> Pull(const HubReference& reference = {"org/tiny"}) {
    const PullReport report = {
        [this](const std::string& line) { notes_.push_back(line); },
        [this](int64_t done, int64_t total) { progress_.emplace_back(done, total); }};
    return PullModel(reference, options_, report);
  }

  PulledModel MustPull(const HubReference& reference = {"org/tiny"}) {
    const absl::StatusOr<PulledModel> pulled = Pull(reference);
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    return pulled.value_or(PulledModel());
  }

  // Returns the message of a pull that must fail.
  std::string Refusal(absl::StatusCode code, const HubReference& reference = {"org/tiny"}) {
    const absl::Status status = Pull(reference).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }

  std::string Cached(const std::string& path) const {
    return cache_.File("models--org--tiny/" + path);
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns the names in a folder; empty if there is none.
  static std::vector<std::string> NamesIn(const std::string& folder) {
    std::vector<std::string> names;
    if (!std::filesystem::exists(folder)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::string weights_ = MakeSafetensors(TinyBertTensors());
  TempFolder files_, cache_;
  test_support::FakeHub hub_;
  HubOptions options_;
  std::vector<std::string> notes_;
  std::vector<std::pair<int64_t, int64_t>> progress_;
};

}  // namespace attendant::server
