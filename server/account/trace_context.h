// The trace of a call, as in the W3C recommendation "Trace Context".
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace attendant::server {

// The request header, which the server returns as a trailer.
inline constexpr char kTraceParent[] = "traceparent";

// Returns the traceparent in the form of version 00, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, which newer versions extend. Empty if it
// is malformed.
std::string ParseTraceParent(absl::string_view text);

}  // namespace attendant::server
