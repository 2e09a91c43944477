#include "client/cli/to_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "proto/model_json.h"

namespace attendant::client {
namespace {

using Json = nlohmann::ordered_json;

Json Element(float value) { return proto::ToJson(value); }
Json Element(int64_t value) { return value; }

// Returns the nested list of the dimensions from `axis` on; `next` iterates over all elements.
template <typename T>
Json Nest(const std::vector<int64_t>& shape, size_t axis, const T*& next) {
  if (axis == shape.size()) return Element(*next++);
  Json list = Json::array();
  for (int64_t i = 0; i < shape[axis]; ++i) list.push_back(Nest(shape, axis + 1, next));
  return list;
}

template <typename T>
Json Values(const Tensor& tensor, const absl::StatusOr<std::vector<T>>& values) {
  if (!values.ok()) return nullptr;
  const T* next = values->data();
  return Nest(tensor.shape, 0, next);
}

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

Json TypeName(std::optional<DataType> dtype) { return dtype ? Json(Name(*dtype)) : Json(nullptr); }

}  // namespace

JsonValue ToJson(const Tensor& tensor) {
  return Json{{"dtype", Name(tensor.dtype)},
              {"shape", tensor.shape},
              {"values", IsFloat(tensor.dtype) ? Values(tensor, ToFloats(tensor))
                                               : Values(tensor, ToInt64s(tensor))}};
}

JsonValue ToJson(const Execution& execution) {
  return Json{{"queue_ms", Milliseconds(execution.queue)},
              {"copy_ms", Milliseconds(execution.copy)},
              {"compute_ms", Milliseconds(execution.compute)},
              {"tokenize_ms", Milliseconds(execution.tokenize)},
              {"tokens", execution.tokens},
              {"truncated_tokens", execution.truncated_tokens},
              {"batch_tokens", execution.batch_tokens},
              {"batch_requests", execution.batch_requests},
              {"compute_dtype", TypeName(execution.compute_dtype)},
              {"compute_type", execution.compute_type},
              {"model_version", execution.model_version},
              {"cached_sequences", execution.cached_sequences}};
}

JsonValue ToJson(const ModelInfo& model) { return proto::ToJson(model); }

}  // namespace attendant::client
