// HTML page of an inspection.
#pragma once

#include <string>

#include "client/inspect/inspection.h"

namespace attendant::client {

// Returns a self-contained page, which loads nothing else. It is light or dark as the reader's
// system is set.
std::string ToHtml(const Inspection& inspection);

}  // namespace attendant::client
