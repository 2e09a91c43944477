#include "server/tensors/status_mapping.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"

namespace attendant::server {
namespace {

constexpr size_t kQuotedBytes = 128;
constexpr size_t kShownDimensions = 8;

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

absl::Status InvalidField(const std::string& field, const std::string& expected,
                          const std::string& got) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected ", expected, "; got ", got));
}

absl::Status NotSupported(const std::string& field, const std::string& value,
                          const std::string& model, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, value.empty() ? "" : " ",
                                                 "not supported by model ", Quote(model), ": ",
                                                 why));
}

absl::Status CannotCombine(const std::string& field, const std::string& other) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": cannot be combined with ", other));
}

absl::Status MissingFor(const std::string& field, const std::string& other) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": requires ", other));
}

absl::Status NotFound(const std::string& field, const std::string& why, const std::string& fix) {
  return absl::NotFoundError(absl::StrCat(field, ": not found (", why, "); ", fix));
}

std::string Quote(const std::string& text) {
  const bool cut = text.size() > kQuotedBytes;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kQuotedBytes)), cut ? "…\"" : "\"");
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  if (shape.size() <= kShownDimensions) return ShapeToString(shape);
  return absl::StrCat(shape.size(), " dimensions beginning ",
                      ShapeToString(shape.first(kShownDimensions)));
}

}  // namespace attendant::server
