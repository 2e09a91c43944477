// Printing of tensors for people to read.
#pragma once

#include <ostream>
#include <string>

#include "client/tensor.h"

namespace attendant::client {

// Prints a title with dtype and shape, then the rows in aligned columns. Only the first and last
// elements of dimensions above 8 are shown.
void PrintTensor(std::ostream& out, const std::string& name, const Tensor& tensor);

}  // namespace attendant::client
