// Valid model names: those of the Hugging Face Hub, ORG/NAME, and others that are unambiguous in a
// path.
#pragma once

#include "absl/strings/string_view.h"

namespace attendant::server {

// The rule of IsModelName, for messages.
inline constexpr char kModelNameRule[] =
    "a model name of 1 to 256 printable characters without spaces, ',', ';' and '=', whose parts "
    "between slashes are not empty, '.', '..', a number, versions, infer, ready, config or stats";

// Returns whether a model may have that name, in UTF-8.
bool IsModelName(absl::string_view name);

// Returns whether a component of an HTTP path ends the model name before it.
bool IsPathWord(absl::string_view part);

}  // namespace attendant::server
