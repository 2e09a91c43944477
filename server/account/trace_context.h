// The trace that a call belongs to, after the recommendation "Trace Context" of the W3C.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace attendant::server {

// The header of a call and the trailer of its end.
inline constexpr char kTraceParent[] = "traceparent";

// Returns a traceparent in the form of version 00, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, which has the same as that of any newer
// version. Empty if it is malformed.
std::string ParseTraceParent(absl::string_view text);

}  // namespace attendant::server
