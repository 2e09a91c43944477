#include "tests/engine/checkpoint/model_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"

namespace attendant {
namespace {

// Converts to float16. Exact for zero and for values that float16 holds as normal numbers.
uint16_t ToHalf(uint32_t bits) {
  if ((bits & 0x7fffffff) == 0) return static_cast<uint16_t>(bits >> 16);
  const uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

template <typename T>
void Append(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "attendant-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "mkdtemp: " << std::strerror(errno);
  path_ = pattern;
}

TempFolder::~TempFolder() { std::filesystem::remove_all(path_); }

void TempFolder::Write(const std::string& name, const std::string& content) const {
  std::filesystem::create_directories(std::filesystem::path(File(name)).parent_path());
  std::ofstream(File(name), std::ios::binary) << content;
}

std::vector<float> TestValues(const std::string& name, int64_t count) {
  int64_t seed = 0;
  for (const char c : name) seed = (seed * 31 + c) % 9973;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((37 * i + 101 * seed) % 257 - 128) / 128);
  }
  return values;
}

std::string Encode(const std::vector<float>& values, const std::string& dtype) {
  std::string bytes;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (dtype == "F64") Append(static_cast<double>(value), bytes);
    if (dtype == "F32") Append(value, bytes);
    if (dtype == "BF16") Append(static_cast<uint16_t>(bits >> 16), bytes);
    if (dtype == "F16") Append(ToHalf(bits), bytes);
  }
  return bytes;
}

TestTensor MakeTensor(const std::string& name, std::vector<int64_t> shape,
                      const std::string& dtype) {
  const int64_t count = *ElementCount(shape);
  return {name, std::move(shape), dtype, Encode(TestValues(name, count), dtype)};
}

std::string WithLength(const std::string& header, const std::string& data) {
  std::string file;
  Append(static_cast<uint64_t>(header.size()), file);
  return file + header + data;
}

std::string MakeSafetensors(const std::vector<TestTensor>& tensors) {
  std::vector<std::string> entries;
  std::string data;
  for (const TestTensor& tensor : tensors) {
    const size_t begin = data.size();
    data += tensor.bytes;
    entries.push_back(absl::StrCat("\"", tensor.name, "\":{\"dtype\":\"", tensor.dtype,
                                   "\",\"shape\":", ShapeToString(tensor.shape),
                                   ",\"data_offsets\":[", begin, ",", data.size(), "]}"));
  }
  return WithLength(absl::StrCat("{", absl::StrJoin(entries, ","), "}"), data);
}

std::vector<float> ReadTensor(Checkpoint& checkpoint, const std::string& name) {
  for (const WeightSpec& spec : ListWeights(checkpoint.description)) {
    if (spec.name != name) continue;
    std::vector<float> values(*ElementCount(spec.shape));
    const absl::Status status = checkpoint.weights->Read(name, absl::MakeSpan(values));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

std::string TinyBertConfig() {
  return R"({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 4,
    "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 8, "vocab_size": 10,
    "max_position_embeddings": 6, "type_vocab_size": 2, "hidden_act": "gelu",
    "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute"})";
}

std::vector<TestTensor> TinyBertTensors(const std::string& prefix) {
  std::vector<TestTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    tensors.push_back(MakeTensor(prefix + name, std::move(shape)));
  };
  const auto add_pair = [&](const std::string& name, std::vector<int64_t> shape) {
    add(name + ".bias", {shape[0]});
    add(name + ".weight", std::move(shape));
  };
  add("embeddings.word_embeddings.weight", {10, 4});
  add("embeddings.position_embeddings.weight", {6, 4});
  add("embeddings.token_type_embeddings.weight", {2, 4});
  add_pair("embeddings.LayerNorm", {4});
  for (const char* layer : {"encoder.layer.0.", "encoder.layer.1."}) {
    for (const char* name : {"query", "key", "value"}) {
      add_pair(absl::StrCat(layer, "attention.self.", name), {4, 4});
    }
    add_pair(absl::StrCat(layer, "attention.output.dense"), {4, 4});
    add_pair(absl::StrCat(layer, "attention.output.LayerNorm"), {4});
    add_pair(absl::StrCat(layer, "intermediate.dense"), {8, 4});
    add_pair(absl::StrCat(layer, "output.dense"), {4, 8});
    add_pair(absl::StrCat(layer, "output.LayerNorm"), {4});
  }
  return tensors;
}

}  // namespace attendant
