// Logging to standard error. Every message is exactly one line, whatever it contains. Threads never
// wait for a slow reader of the log; it misses lines instead.
#pragma once

#include <string>

#include "server/settings/settings.h"

namespace attendant::server {

// Sets spdlog's default logger, which also receives the messages of gRPC and protobuf, at debug
// level, or as critical if they end the process. `level` is a value of --log-level.
//
// A text line is "2026-01-31T12:00:00.000Z info message" with control characters escaped, so that
// text from a client cannot forge a line. A JSON line is {"time": …, "level": …, "message": …}.
void StartLogging(LogFormat format, const std::string& level);

// Returns `message` with its control characters escaped: line breaks and tabs as \n and \t, others
// in hexadecimal digits, such as \x1b.
std::string EscapeControls(const std::string& message);

}  // namespace attendant::server
