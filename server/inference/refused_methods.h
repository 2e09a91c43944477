// Methods of the Open Inference Protocol that the server does not have.
#pragma once

#include "absl/strings/string_view.h"

namespace attendant::server {

// Why there is no method of this path, "/service/name", in a sentence for its caller.
const char* WhyNoMethod(absl::string_view path);

}  // namespace attendant::server
