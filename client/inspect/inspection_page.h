// An inspection as one HTML page.
#pragma once

#include <string>

#include "client/inspect/inspection.h"

namespace attendant::client {

// Self-contained: no request leaves it. Light or dark as the reader's system is.
std::string ToHtml(const Inspection& inspection);

}  // namespace attendant::client
