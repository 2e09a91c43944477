#include "client/files/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/files/file_bytes.h"
#include "client/files/wide_float.h"

namespace attendant::client {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr int kMaxNesting = 3;                    // header, tensor, shape
constexpr size_t kMaxRank = 32;
constexpr size_t kNamesShown = 10;

struct TypeName {
  DataType dtype;
  const char* name;
};
constexpr std::array<TypeName, 12> kTypes = {{{DataType::kFloat32, "F32"},
                                              {DataType::kFloat16, "F16"},
                                              {DataType::kBFloat16, "BF16"},
                                              {DataType::kBool, "BOOL"},
                                              {DataType::kInt8, "I8"},
                                              {DataType::kUInt8, "U8"},
                                              {DataType::kInt16, "I16"},
                                              {DataType::kUInt16, "U16"},
                                              {DataType::kInt32, "I32"},
                                              {DataType::kUInt32, "U32"},
                                              {DataType::kInt64, "I64"},
                                              {DataType::kUInt64, "U64"}}};
constexpr char kFloat64[] = "F64";
constexpr char kMetadata[] = "__metadata__";

struct Header {
  Json entries;
  int64_t data_offset;
};

struct Entry {
  DataType dtype;
  bool is_float64;
  std::vector<int64_t> shape;
  int64_t begin;  // offset from the start of the data
  int64_t bytes;
};

// Returns whether the text nests deeper than any valid header does. The parser itself has no limit.
bool NestsTooDeep(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      if (++depth > kMaxNesting) return true;
    } else if (!in_string && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return false;
}

absl::StatusOr<Header> ReadHeader(InputFile& file) {
  const auto prefix = file.Read(0, kLengthBytes);
  if (!prefix.ok()) return file.Error("is not a safetensors file: shorter than 8 bytes");
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<uint8_t>((*prefix)[i]);
  }
  if (length > kMaxHeaderBytes || static_cast<int64_t>(length) > file.size() - kLengthBytes) {
    return file.Error(absl::StrCat("is not a safetensors file: a header of ", length,
                                   " bytes in a file of ", file.size()));
  }
  const auto text = file.Read(kLengthBytes, static_cast<int64_t>(length));
  if (!text.ok()) return text.status();
  if (NestsTooDeep(*text)) return file.Error("has a header that is nested too deeply");
  Json entries = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!entries.is_object()) return file.Error("has a header that is not a JSON object");
  return Header{std::move(entries), kLengthBytes + static_cast<int64_t>(length)};
}

std::vector<std::string> Names(const Header& header) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : header.entries.items()) {
    if (name != kMetadata) names.push_back(name);
  }
  return names;
}

absl::StatusOr<std::string> Choose(const InputFile& file, const Header& header,
                                   const std::string& name) {
  std::vector<std::string> names = Names(header);
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  if (known) return name;
  if (name.empty() && names.size() == 1) return names.front();
  const size_t count = names.size();
  if (count > kNamesShown) names.resize(kNamesShown);
  const std::string list =
      absl::StrCat(absl::StrJoin(names, ", "), count > kNamesShown ? ", …" : "");
  if (name.empty()) {
    return file.Error(absl::StrCat("holds ", count, " tensors; name one as FILE:NAME: ", list));
  }
  return file.Error(absl::StrCat("has no tensor '", name, "'; it has ", list));
}

// Returns the list of integers under `key`; nothing if there is none, it is too long, or an integer
// is negative or beyond int64.
std::optional<std::vector<int64_t>> Integers(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array() || found->size() > kMaxRank) return std::nullopt;
  std::vector<int64_t> values;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX) return std::nullopt;
    values.push_back(value.get<int64_t>());
  }
  return values;
}

absl::StatusOr<Entry> ParseEntry(const InputFile& file, const Header& header,
                                 const std::string& name) {
  const Json& json = header.entries[name];
  const std::string subject = absl::StrCat("tensor '", name, "' ");
  if (!json.is_object()) return file.Error(subject + "is not described by a JSON object");
  auto shape = Integers(json, "shape");
  const auto offsets = Integers(json, "data_offsets");
  const auto type = json.find("dtype");
  if (!shape || !offsets || offsets->size() != 2 || type == json.end() || !type->is_string()) {
    return file.Error(subject + "needs dtype, shape and data_offsets");
  }
  const std::string& type_name = type->get_ref<const std::string&>();
  const bool is_float64 = type_name == kFloat64;
  std::optional<DataType> dtype;
  if (is_float64) dtype = DataType::kFloat32;
  for (const TypeName& known : kTypes) {
    if (type_name == known.name) dtype = known.dtype;
  }
  if (!dtype) return file.Error(absl::StrCat(subject, "has the unknown dtype ", type_name));
  const int64_t begin = (*offsets)[0];
  const int64_t end = (*offsets)[1];
  const int64_t present = file.size() - header.data_offset;
  if (begin > end || end > present) {
    return file.Error(absl::StrCat(subject, "has data_offsets ", begin, "..", end, " in ", present,
                                   " bytes of data"));
  }
  const int64_t bytes = end - begin;
  if (ByteCount(*shape, is_float64 ? 8 : ByteWidth(*dtype)) != bytes) {
    return file.Error(absl::StrCat(subject, "has ", bytes, " bytes, which do not match shape ",
                                   ShapeToString(*shape), " of ", type_name));
  }
  return Entry{*dtype, is_float64, *std::move(shape), begin, bytes};
}

const char* TypeNameOf(DataType dtype) {
  for (const TypeName& known : kTypes) {
    if (known.dtype == dtype) return known.name;
  }
  return "";
}

}  // namespace

absl::StatusOr<Tensor> ReadSafetensors(const std::string& path, const std::string& name) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Header> header = ReadHeader(*file);
  if (!header.ok()) return header.status();
  const absl::StatusOr<std::string> chosen = Choose(*file, *header, name);
  if (!chosen.ok()) return chosen.status();
  absl::StatusOr<Entry> entry = ParseEntry(*file, *header, *chosen);
  if (!entry.ok()) return entry.status();
  auto data = file->Read(header->data_offset + entry->begin, entry->bytes);
  if (!data.ok()) return data.status();
  return Tensor{entry->dtype, std::move(entry->shape),
                entry->is_float64 ? NarrowFloat64(*data) : *std::move(data)};
}

absl::Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string body;
  for (const NamedTensor& named : tensors) {
    const size_t begin = body.size();
    body += named.tensor.data;
    header[named.name] = {{"dtype", TypeNameOf(named.tensor.dtype)},
                          {"shape", named.tensor.shape},
                          {"data_offsets", {begin, body.size()}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string head;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    head.push_back(static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i)));
  }
  return WriteFile(path, head + text, body);
}

}  // namespace attendant::client
