#include "engine/model/head_description.h"

#include "absl/strings/str_cat.h"

namespace attendant {

std::vector<NamedDense> PoolingDescription::dense_layers() const {
  std::vector<NamedDense> layers;
  if (dense_width != 0) layers.push_back({"dense", first_dense()});
  if (output_width != 0) layers.push_back({"output", {output_width}});
  for (const DenseShape& dense : further_dense) {
    layers.push_back({absl::StrCat("further.", &dense - further_dense.data()), dense});
  }
  return layers;
}

}  // namespace attendant
