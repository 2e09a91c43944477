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
  // The same weights again, beside the second NUMA node of the thread plan and on.
  std::vector<std::shared_ptr<const Encoder>> further_copies = {};

  const std::shared_ptr<const Encoder>& copy(int i) const {
    return i == 0 ? encoder : further_copies[i - 1];
  }
};

// Fixed once the server is ready. Sorted by name.
using ServedModels = std::map<std::string, std::shared_ptr<const ServedModel>>;

}  // namespace attendant::server
