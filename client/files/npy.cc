#include "client/files/npy.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/files/file_bytes.h"
#include "client/files/wide_float.h"

namespace attendant::client {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr int64_t kMagicBytes = 6;
constexpr int64_t kMaxNpyHeaderBytes = 64 << 10;
constexpr size_t kMaxNpyRank = 32;  // NumPy's own limit

struct NpyType {
  DataType dtype;
  const char* descr;
};
constexpr std::array<NpyType, 11> kNpyTypes = {{{DataType::kFloat32, "<f4"},
                                                {DataType::kFloat16, "<f2"},
                                                {DataType::kBool, "|b1"},
                                                {DataType::kInt8, "|i1"},
                                                {DataType::kUInt8, "|u1"},
                                                {DataType::kInt16, "<i2"},
                                                {DataType::kUInt16, "<u2"},
                                                {DataType::kInt32, "<i4"},
                                                {DataType::kUInt32, "<u4"},
                                                {DataType::kInt64, "<i8"},
                                                {DataType::kUInt64, "<u8"}}};
constexpr char kNpyFloat64[] = "<f8";

struct NpyHeader {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Parses the header, which is a Python dict literal: {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string& text) : text_(text) {}

  std::optional<NpyHeader> Parse() {
    NpyHeader header;
    if (!Take('{')) return std::nullopt;
    while (!Take('}')) {
      const std::optional<std::string> key = String();
      if (!key || !Take(':') || !Value(*key, header)) return std::nullopt;
      if (!Take(',') && Peek() != '}') return std::nullopt;
    }
    if (Peek() != '\0' || header.descr.empty() || !header.fortran_order || !header.shape) {
      return std::nullopt;
    }
    return header;
  }

 private:
  bool Value(const std::string& key, NpyHeader& header) {
    if (key == "descr") {
      const std::optional<std::string> descr = String();
      header.descr = descr.value_or("");
      return descr.has_value();
    }
    if (key == "fortran_order") {
      if (!TakeWord("True") && !TakeWord("False")) return false;
      header.fortran_order = text_[position_ - 2] == 'u';
      return true;
    }
    return key == "shape" && Shape(header.shape.emplace());
  }

  bool Shape(std::vector<int64_t>& shape) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      Peek();
      const size_t end = text_.find_first_not_of("0123456789", position_);
      int64_t dimension = 0;
      if (end == std::string::npos || shape.size() == kMaxNpyRank ||
          !absl::SimpleAtoi(text_.substr(position_, end - position_), &dimension)) {
        return false;
      }
      position_ = end;
      shape.push_back(dimension);
      if (!Take(',') && Peek() != ')') return false;
    }
    return true;
  }

  std::optional<std::string> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, position_ + 1);
    if (end == std::string::npos) return std::nullopt;
    std::string value = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return value;
  }

  // Returns the next character that is not a space; NUL at the end.
  char Peek() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool Take(char expected) {
    if (Peek() != expected) return false;
    ++position_;
    return true;
  }

  bool TakeWord(const std::string& word) {
    Peek();
    if (text_.compare(position_, word.size(), word) != 0) return false;
    position_ += word.size();
    return true;
  }

  const std::string& text_;
  size_t position_ = 0;
};

std::optional<DataType> TypeOf(const std::string& descr) {
  for (const NpyType& type : kNpyTypes) {
    if (descr == type.descr) return type.dtype;
  }
  return std::nullopt;
}

uint32_t LittleEndian(const std::string& bytes, size_t offset, size_t width) {
  uint32_t value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  return value;
}

// The place of the header's text in the file.
struct Extent {
  int64_t offset;
  int64_t bytes;
};

absl::StatusOr<Extent> FindHeader(InputFile& file) {
  const auto start = file.Read(0, kMagicBytes + 2);
  if (!start.ok() || start->compare(0, kMagicBytes, kMagic) != 0) {
    return file.Error("is not a .npy file");
  }
  const int version = static_cast<uint8_t>((*start)[kMagicBytes]);
  if (version != 1 && version != 2) {
    return file.Error(absl::StrCat("has .npy format version ", version, "; expected 1 or 2"));
  }
  const int64_t width = version == 1 ? 2 : 4;
  const auto length = file.Read(kMagicBytes + 2, width);
  if (!length.ok()) return length.status();
  const Extent header{kMagicBytes + 2 + width,
                      LittleEndian(*length, 0, static_cast<size_t>(width))};
  if (header.bytes > kMaxNpyHeaderBytes) {
    return file.Error(
        absl::StrCat("has a header of ", header.bytes, " bytes, more than ", kMaxNpyHeaderBytes));
  }
  return header;
}

}  // namespace

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Extent> extent = FindHeader(*file);
  if (!extent.ok()) return extent.status();
  const auto text = file->Read(extent->offset, extent->bytes);
  if (!text.ok()) return text.status();
  std::optional<NpyHeader> header = HeaderParser(*text).Parse();
  if (!header) return file->Error("has an unsupported header");
  if (*header->fortran_order) {
    return file->Error("is in Fortran order; save numpy.ascontiguousarray(array) instead");
  }
  const bool is_float64 = header->descr == kNpyFloat64;
  const std::optional<DataType> dtype = is_float64 ? DataType::kFloat32 : TypeOf(header->descr);
  if (!dtype) {
    return file->Error(absl::StrCat("holds elements of type '", header->descr,
                                    "'; expected little-endian bool, integer or float"));
  }
  const int64_t width = is_float64 ? 8 : ByteWidth(*dtype);
  const int64_t present = file->size() - extent->offset - extent->bytes;
  if (ByteCount(*header->shape, width) != present) {
    return file->Error(absl::StrCat("has ", present, " bytes of data, which do not match shape ",
                                    ShapeToString(*header->shape), " of '", header->descr, "'"));
  }
  auto data = file->Read(extent->offset + extent->bytes, present);
  if (!data.ok()) return data.status();
  return Tensor{*dtype, std::move(*header->shape),
                is_float64 ? NarrowFloat64(*data) : *std::move(data)};
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  const char* descr = nullptr;
  for (const NpyType& type : kNpyTypes) {
    if (type.dtype == tensor.dtype) descr = type.descr;
  }
  if (descr == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": .npy has no ", Name(tensor.dtype), "; write to a .safetensors file"));
  }
  std::string shape;
  for (int64_t dimension : tensor.shape) absl::StrAppend(&shape, dimension, ", ");
  std::string text =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kPrefix = kMagicBytes + 4;
  text.append(63 - (kPrefix + text.size()) % 64, ' ');  // the format aligns the data to 64 bytes
  text.push_back('\n');
  std::string head(kMagic, kMagicBytes);
  head.push_back(1);
  head.push_back(0);
  head.push_back(static_cast<char>(text.size() & 0xFF));
  head.push_back(static_cast<char>(text.size() >> 8));
  return WriteFile(path, head + text, tensor.data);
}

}  // namespace attendant::client
