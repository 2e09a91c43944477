// A PutMemoryRequest that has passed every check: which rows to project, and where to keep the
// result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/batching/job.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/models/layer_span.h"
#include "server/request/cross_kv_rows.h"

namespace attendant::server {

struct RegistrationRequest {
  LayerSpan span;  // one layer
  CrossKvRows cross_kv_rows;
  std::shared_ptr<RegisteredCrossKv> cross_kv;  // room for the keys and values of these rows
  absl::Duration age;                           // until they expire
  std::string request_id;

  // Rows are projected for a whole batch, values from the rows of the keys or from others.
  BatchKey key() const {
    const int32_t has_values = cross_kv_rows.values ? 1 : 0;
    return {span.model.get(), JobKind::kRegistration, has_values, span.first_layer, span.layers};
  }

  LayerRange range() const { return {span.first_layer, span.layers, LayerPart::kInputs}; }

  int64_t sequences() const { return 1; }  // it is never divided

  // Rows that are gathered for it, without padding and with it.
  int64_t tokens() const { return cross_kv_rows.tokens(); }
  int64_t rows() const { return cross_kv_rows.rows(); }
};

}  // namespace attendant::server
