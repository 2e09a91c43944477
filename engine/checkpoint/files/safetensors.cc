#include "engine/checkpoint/files/safetensors.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kFormatHeaderLimit = 100'000'000;
constexpr int64_t kSmallestFile = 10;
constexpr size_t kMostTensors = 100'000;
constexpr size_t kLongestName = 512;
constexpr size_t kHighestRank = 8;
// One tensor takes at most 14 JSON values: its object, type, two lists, eight sizes and two
// offsets.
constexpr JsonLimits kHeaderLimits = {kFormatHeaderLimit, /*max_depth=*/4, 14 * kMostTensors};

struct Dtype {
  absl::string_view name;
  int bits;
  std::optional<DataType> data_type;
};

constexpr Dtype kDtypes[] = {
    {"F32", 32, DataType::kFloat32},   {"F16", 16, DataType::kFloat16},
    {"BF16", 16, DataType::kBFloat16}, {"F64", 64, DataType::kFloat64},
    {"BOOL", 8, DataType::kBool},      {"I8", 8, DataType::kInt8},
    {"U8", 8, DataType::kUInt8},       {"I16", 16, DataType::kInt16},
    {"U16", 16, DataType::kUInt16},    {"I32", 32, DataType::kInt32},
    {"U32", 32, DataType::kUInt32},    {"I64", 64, DataType::kInt64},
    {"U64", 64, DataType::kUInt64},    {"C64", 64, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},      {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},      {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},  {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},      {"F4", 4, std::nullopt},
};

const Dtype* FindDtype(const Json& entry) {
  const auto name = entry.find("dtype");
  if (name == entry.end() || !name->is_string()) return nullptr;
  for (const Dtype& dtype : kDtypes) {
    if (absl::string_view(name->get_ref<const std::string&>()) == dtype.name) return &dtype;
  }
  return nullptr;
}

// Returns a list of plain non-negative integers (W5), or nothing if the entry has none.
std::optional<std::vector<int64_t>> FindCounts(const Json& entry, const char* key) {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array()) return std::nullopt;
  std::vector<int64_t> counts;
  for (const Json& element : *list) {
    const std::optional<int64_t> count = AsCount(element);
    if (!count) return std::nullopt;
    counts.push_back(*count);
  }
  return counts;
}

// Returns the bytes that the elements take, or nothing if the number overflows or is not whole
// (W7).
std::optional<int64_t> CountBytes(const std::vector<int64_t>& shape, int bits) {
  const CheckedSize all_bits = CheckedSize(ElementCount(shape).value_or(-1)) * bits;
  if (!all_bits.ok() || all_bits.value() % 8 != 0) return std::nullopt;
  return all_bits.value() / 8;
}

// Fills `tensor` from its entry, or returns the problem. Checks its name (W3), its integers, type
// and size (W5 to W7), and that its offsets fit its size (W8).
std::string ParseTensor(const std::string& name, const Json& entry, FileTensor& tensor) {
  if (name.size() > kLongestName || name.find('\0') != std::string::npos) {
    return absl::StrCat("expected a name of at most ", kLongestName, " bytes without NUL");
  }
  if (!entry.is_object() || entry.size() != 3) {
    return "expected an object with only dtype, shape and data_offsets";
  }
  const Dtype* dtype = FindDtype(entry);
  if (dtype == nullptr) {
    return absl::StrCat("expected a dtype of the format",
                        entry.contains("dtype") ? "; got " + Describe(entry["dtype"]) : "");
  }
  std::optional<std::vector<int64_t>> shape = FindCounts(entry, "shape");
  if (!shape || shape->size() > kHighestRank) {
    return absl::StrCat("expected a shape of at most ", kHighestRank,
                        " plain non-negative integers");
  }
  const std::optional<std::vector<int64_t>> offsets = FindCounts(entry, "data_offsets");
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return "expected data_offsets of two plain non-negative integers in order";
  }
  const std::optional<int64_t> bytes = CountBytes(*shape, dtype->bits);
  if (!bytes) {
    return absl::StrCat("expected a size in whole bytes below 2^60; got ", dtype->name, " ",
                        ShapeToString(*shape));
  }
  tensor = {std::string(dtype->name), dtype->data_type, *std::move(shape), (*offsets)[0],
            (*offsets)[1] - (*offsets)[0]};
  if (tensor.bytes == *bytes) return "";
  return absl::StrCat("expected ", *bytes, " bytes for ", dtype->name, " ",
                      ShapeToString(tensor.shape), "; got ", tensor.bytes,
                      " between its data_offsets");
}

// Returns the problem if the tensors do not cover the data from its first to its last byte, each
// byte once (W8).
std::string CheckCoverage(const TensorTable& tensors, int64_t data_bytes) {
  std::vector<std::pair<const std::string*, const FileTensor*>> order;
  for (const auto& [name, tensor] : tensors) order.emplace_back(&name, &tensor);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second->offset, a.second->bytes) <
           std::tie(b.second->offset, b.second->bytes);
  });
  int64_t end = 0;
  for (const auto& [name, tensor] : order) {
    if (tensor->offset != end) {
      return absl::StrCat("tensor ", Quoted(*name), ": expected to begin at byte ", end,
                          " of the data, where the previous tensor ends; got ", tensor->offset);
    }
    end += tensor->bytes;
  }
  if (end == data_bytes) return "";
  return absl::StrCat("expected ", end, " bytes of data after the header; got ", data_bytes);
}

void CheckMetadata(const Json& metadata, Problems& problems) {
  bool strings = metadata.is_object();
  if (strings) {
    for (const Json& value : metadata) strings &= value.is_string();
  }
  if (!strings) problems.Add("__metadata__: expected an object of strings");
}

absl::Status CheckFrame(absl::string_view header, const std::string& path) {
  if (header.empty() || header.front() != '{') {
    return InvalidArgument(path, ": expected the header to begin with {");
  }
  if (header[header.find_last_not_of(' ')] != '}') {
    return InvalidArgument(path, ": expected the header to end with } and optional spaces");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorTable> ParseSafetensorsHeader(absl::string_view header, int64_t data_bytes,
                                                   const std::string& path) {
  RETURN_IF_ERROR(CheckFrame(header, path));
  ASSIGN_OR_RETURN(const Json json, ParseJson(header, kHeaderLimits, path));
  if (json.size() > kMostTensors) {
    return InvalidArgument(path, ": expected at most ", kMostTensors, " tensors; got ",
                           json.size());
  }
  Problems problems(path);
  TensorTable tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      CheckMetadata(entry, problems);
      continue;
    }
    const std::string problem = ParseTensor(name, entry, tensors[name]);
    if (!problem.empty()) problems.Add("tensor ", Quoted(name), ": ", problem);
  }
  if (problems.empty()) {
    const std::string problem = CheckCoverage(tensors, data_bytes);
    if (!problem.empty()) problems.Add(problem);
  }
  RETURN_IF_ERROR(problems.ToStatus());
  for (auto& [name, tensor] : tensors) {
    tensor.offset += kLengthBytes + static_cast<int64_t>(header.size());
  }
  return tensors;
}

absl::StatusOr<SafetensorsFile> OpenSafetensors(const std::string& path, int64_t max_bytes,
                                                int64_t max_header_bytes) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path, max_bytes));
  if (file.size() < kSmallestFile) {
    return InvalidArgument(path, ": expected a safetensors file of at least ", kSmallestFile,
                           " bytes; got ", file.size());
  }
  unsigned char length_bytes[kLengthBytes];
  RETURN_IF_ERROR(file.ReadAt(0, {reinterpret_cast<char*>(length_bytes), sizeof(length_bytes)}));
  uint64_t length = 0;
  for (int i = kLengthBytes; i-- > 0;) length = length << 8 | length_bytes[i];

  const int64_t limit =
      std::min({max_header_bytes, kFormatHeaderLimit, file.size() - kLengthBytes});
  if (length > static_cast<uint64_t>(limit)) {
    return InvalidArgument(path, ": expected a header of at most ", limit, " bytes; got ", length);
  }
  std::string header(static_cast<size_t>(length), '\0');
  RETURN_IF_ERROR(file.ReadAt(kLengthBytes, absl::MakeSpan(header)));
  ASSIGN_OR_RETURN(TensorTable tensors,
                   ParseSafetensorsHeader(
                       header, file.size() - kLengthBytes - static_cast<int64_t>(length), path));
  return SafetensorsFile{std::move(file), std::move(tensors)};
}

}  // namespace attendant
