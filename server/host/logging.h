// Logging to standard error. Every message is exactly one line, whatever text it contains; nobody
// waits for the reader of the log, who misses lines if it is too slow.
#pragma once

#include <string>

#include "server/settings/settings.h"

namespace attendant::server {

// Sets spdlog's default logger. The messages of gRPC and protobuf go there too, at debug level, or
// as critical if they end the process. `level` is one of the words that --log-level accepts.
//
// A text line is "2026-01-31T12:00:00.000Z info message" with control characters escaped, so that
// text from a client cannot forge a line. A JSON line is {"time": …, "level": …, "message": …}.
void StartLogging(LogFormat format, const std::string& level);

// Returns `message` with its control characters written as \n, \t or, for example, \x1b.
std::string EscapeControls(const std::string& message);

// Returns `message` as a JSON string, with the quotes. Bytes that are not UTF-8 become U+FFFD.
std::string QuoteJson(const std::string& message);

}  // namespace attendant::server
