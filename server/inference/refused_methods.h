// Methods of the Open Inference Protocol that the server does not support.
#pragma once

#include "absl/strings/string_view.h"

namespace attendant::server {

// Returns why there is no method "/service/name", as a sentence for the client. Never null.
const char* WhyNoMethod(absl::string_view path);

}  // namespace attendant::server
