#include "client/load_requests/input_files.h"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/files/file_bytes.h"
#include "client/load_requests/length_distribution.h"

namespace attendant::client {
namespace {

// Calls `read` with each line; it returns false for one that is not as `expected`.
absl::Status ReadLines(const std::string& path, const std::string& expected,
                       const std::function<bool(absl::string_view)>& read) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::string> bytes = file->Read(0, file->size());
  if (!bytes.ok()) return bytes.status();
  int64_t number = 0;
  int64_t used = 0;
  for (absl::string_view line : absl::StrSplit(*bytes, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    if (!read(line)) {
      return file->Error(absl::StrCat("line ", number, ": expected ", expected));
    }
    ++used;
  }
  if (used == 0) return file->Error(absl::StrCat("has no lines; each must be ", expected));
  return absl::OkStatus();
}

bool ReadIdList(absl::string_view line, std::vector<int64_t>& ids) {
  nlohmann::json parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object() && parsed.contains("input_ids")) parsed = parsed["input_ids"];
  if (!parsed.is_array() || parsed.empty() || parsed.size() > kMaxLength) return false;
  for (const nlohmann::json& id : parsed) {
    if (!id.is_number_integer()) return false;
    ids.push_back(id.get<int64_t>());
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ReadLengths(const std::string& path) {
  std::vector<int64_t> lengths;
  const absl::Status status =
      ReadLines(path, absl::StrCat("a length from 1 to ", kMaxLength), [&](absl::string_view line) {
        int64_t& length = lengths.emplace_back();
        return absl::SimpleAtoi(line, &length) && length >= 1 && length <= kMaxLength;
      });
  if (!status.ok()) return status;
  return lengths;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> ReadIds(const std::string& path) {
  std::vector<std::vector<int64_t>> sequences;
  const absl::Status status =
      ReadLines(path, "a JSON list of token ids, such as [101, 7592, 102]",
                [&](absl::string_view line) { return ReadIdList(line, sequences.emplace_back()); });
  if (!status.ok()) return status;
  return sequences;
}

absl::StatusOr<std::vector<double>> ReadTimestamps(const std::string& path) {
  std::vector<double> times;
  double first = 0;
  const absl::Status status = ReadLines(
      path, "a time in seconds that is not before the one above it", [&](absl::string_view line) {
        double time = 0;
        if (!absl::SimpleAtod(line, &time) || !std::isfinite(time)) return false;
        if (times.empty()) first = time;
        if (!times.empty() && time - first < times.back()) return false;
        times.push_back(time - first);
        return true;
      });
  if (!status.ok()) return status;
  return times;
}

}  // namespace attendant::client
