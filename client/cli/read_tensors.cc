#include "client/cli/read_tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/inline_values.h"
#include "client/files/tensor_file.h"

namespace attendant::client {

absl::Status Named(const std::string& flag, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(flag, ": ", status.message()));
}

void AddBatchDimension(size_t full_rank, Layout layout, Tensor& tensor) {
  if (tensor.shape.size() + 1 != full_rank) return;
  tensor.shape.insert(tensor.shape.begin() + (layout == Layout::kSequenceFirst ? 1 : 0), 1);
}

absl::StatusOr<Tensor> ReadFloats(const std::string& flag, const std::string& source) {
  absl::StatusOr<Tensor> tensor =
      LooksLikeFloats(source) ? ParseFloatRows(source) : ReadTensor(source);
  if (!tensor.ok()) return Named(flag, tensor.status());
  return tensor;
}

absl::Status ReadIntegers(const std::string& flag, const std::string& source,
                          std::optional<Tensor>& tensor, std::vector<int64_t>* lengths) {
  if (source.empty()) return absl::OkStatus();
  if (!LooksInline(source)) {
    absl::StatusOr<Tensor> read = ReadTensor(source);
    if (!read.ok()) return Named(flag, read.status());
    tensor = *std::move(read);
    return absl::OkStatus();
  }
  const auto rows = ParseIntRows(source);
  if (!rows.ok()) return Named(flag, rows.status());
  std::vector<int64_t> values;
  std::vector<int64_t> row_lengths;
  bool ragged = false;
  for (const std::vector<int64_t>& row : *rows) {
    values.insert(values.end(), row.begin(), row.end());
    row_lengths.push_back(static_cast<int64_t>(row.size()));
    ragged |= row.size() != rows->front().size();
  }
  if (ragged && (lengths == nullptr || (!lengths->empty() && *lengths != row_lengths))) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, ": expected rows of ",
        lengths == nullptr ? "one length" : absl::StrCat("lengths ", absl::StrJoin(*lengths, ",")),
        "; got rows of lengths ", absl::StrJoin(row_lengths, ",")));
  }
  const auto count = static_cast<int64_t>(values.size());
  tensor = ragged ? Int64Tensor({count}, values)
                  : Int64Tensor({static_cast<int64_t>(rows->size()), row_lengths.front()}, values);
  if (ragged) *lengths = row_lengths;
  return absl::OkStatus();
}

}  // namespace attendant::client
