// Narrowing of float64, which files may have but the protocol does not.
#pragma once

#include <string>

namespace attendant::client {

// Takes the bytes of float64 values and returns the bytes of the nearest float32 values.
std::string NarrowFloat64(const std::string& data);

}  // namespace attendant::client
