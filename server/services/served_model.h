// A model that requests can name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/layers/encoder.h"

namespace attendant::server {

struct ServedModel {
  std::string name;
  std::shared_ptr<const Encoder> encoder;
  std::vector<std::string> unused_tensors;
  std::string base = {};  // the model whose weights it shares, all but some norms; empty: none
};

// Fixed once the server is ready. Sorted by name.
using ServedModels = std::map<std::string, std::shared_ptr<const ServedModel>>;

}  // namespace attendant::server
