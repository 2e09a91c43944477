// Functions that make small checkpoints for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace attendant {

// A new folder, which the destructor removes.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file, and makes the folders in its name.
  void Write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

// A tensor of a safetensors file.
struct TestTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype = "F32";
  std::string bytes = {};
};

// Returns values that depend on the name only: multiples of 1/128 in [-1, 1], which are exact in
// every float type.
std::vector<float> TestValues(const std::string& name, int64_t count);

// Returns the bytes of `values` in a float dtype of safetensors.
std::string Encode(const std::vector<float>& values, const std::string& dtype);

// Returns a tensor with the TestValues of its name.
TestTensor MakeTensor(const std::string& name, std::vector<int64_t> shape,
                      const std::string& dtype = "F32");

// Return the bytes of a safetensors file: header length, header, data.
std::string WithLength(const std::string& header, const std::string& data = "");
std::string MakeSafetensors(const std::vector<TestTensor>& tensors);

// Returns a whole tensor by its canonical name. Fails the test on an error.
std::vector<float> ReadTensor(Checkpoint& checkpoint, const std::string& name);

// BERT with E 4, H 2, F 8, 10 words, 6 positions, 2 token types and 2 layers.
std::string TinyBertConfig();
std::vector<TestTensor> TinyBertTensors(const std::string& prefix = "");

}  // namespace attendant
