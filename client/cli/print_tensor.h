// Tensors for people.
#pragma once

#include <ostream>
#include <string>

#include "client/tensor.h"

namespace attendant::client {

// A title with dtype and shape, then the rows in aligned columns. Dimensions above 8 are elided in
// the middle.
void PrintTensor(std::ostream& out, const std::string& name, const Tensor& tensor);

}  // namespace attendant::client
