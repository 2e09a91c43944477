// A range of consecutive layers of a served model.
#pragma once

#include <cstdint>
#include <memory>

#include "server/models/served_model.h"

namespace attendant::server {

struct LayerSpan {
  std::shared_ptr<const ServedModel> model;
  int64_t first_layer = 0;
  int64_t layers = 1;

  const ModelDescription& description() const { return model->encoder->description(); }

  friend bool operator==(const LayerSpan&, const LayerSpan&) = default;
};

}  // namespace attendant::server
