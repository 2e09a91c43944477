// Methods of the Open Inference Protocol that the server does not support.
#pragma once

#include "absl/strings/string_view.h"

namespace attendant::server {

// Returns why "/service/name" is not supported, as a sentence for the client; null for other paths.
const char* WhyNoMethod(absl::string_view path);

}  // namespace attendant::server
