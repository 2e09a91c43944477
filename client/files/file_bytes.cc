#include "client/files/file_bytes.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant::client {

InputFile::InputFile(std::string path, int64_t size, std::ifstream stream)
    : path_(std::move(path)), size_(size), stream_(std::move(stream)) {}

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  if (!std::filesystem::is_regular_file(status)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  const uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream) return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be read"));
  return InputFile(path, static_cast<int64_t>(size), std::move(stream));
}

absl::StatusOr<std::string> InputFile::Read(int64_t offset, int64_t count) {
  if (offset < 0 || count < 0 || offset > size_ || count > size_ - offset) {
    return Error(absl::StrCat("ends too early: ", count, " bytes at ", offset, " of ", size_));
  }
  std::string bytes(static_cast<size_t>(count), '\0');
  stream_.clear();
  stream_.seekg(offset);
  stream_.read(bytes.data(), count);
  if (stream_.gcount() != count) return Error("cannot be read to its end");
  return bytes;
}

absl::Status InputFile::Error(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
}

absl::Status CheckWritable(const std::string& path) {
  if (std::ofstream(path, std::ios::binary | std::ios::app)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be written"));
}

absl::Status WriteFile(const std::string& path, const std::string& head, const std::string& body) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(head.data(), static_cast<std::streamsize>(head.size()));
  stream.write(body.data(), static_cast<std::streamsize>(body.size()));
  stream.close();
  if (!stream) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace attendant::client
