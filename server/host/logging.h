// Log lines on standard error: one line a message, whatever is in it.
#pragma once

#include <string>

#include "server/settings/settings.h"

namespace attendant::server {

// Sets spdlog's default logger, and sends gRPC's and protobuf's own messages there, at debug
// level. `level` is one of the words of --log-level. Text: "2026-01-31T12:00:00.000Z info message",
// control characters escaped, so that nobody forges a line. JSON: {"time": …, "level": …,
// "message": …}.
void StartLogging(LogFormat format, const std::string& level);

// `message` without control characters: as \n, \t, \x1b.
std::string EscapeControls(const std::string& message);

// `message` as a JSON string, in quotes; bytes that are no UTF-8 become U+FFFD.
std::string QuoteJson(const std::string& message);

}  // namespace attendant::server
