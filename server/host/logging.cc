#include "server/host/logging.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "server/text/base/json_tree.h"

namespace attendant::server {
namespace {

// Writes lines to standard error, and drops them while the reader does not keep up, because
// requests must not wait for it. The next line reports how many are missing. Escapes each message,
// so that it stays on one line.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(LogFormat format) : format_(format) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    pollfd writable = {STDERR_FILENO, POLLOUT, 0};
    if (poll(&writable, 1, /*timeout=*/0) != 1 || (writable.revents & POLLOUT) == 0) {
      ++dropped_;
      return;
    }
    spdlog::memory_buf_t lines;
    if (dropped_ > 0) {
      const std::string text = absl::StrFormat("%d log lines were dropped", dropped_);
      Append({message.logger_name, spdlog::level::warn, text}, lines);
      dropped_ = 0;
    }
    Append(message, lines);
    for (size_t written = 0; written < lines.size();) {
      const ssize_t more = write(STDERR_FILENO, lines.data() + written, lines.size() - written);
      if (more < 0 && errno != EINTR) return;
      written += static_cast<size_t>(std::max<ssize_t>(more, 0));
    }
  }
  void flush_() override {}

 private:
  void Append(spdlog::details::log_msg message, spdlog::memory_buf_t& lines) {
    const std::string payload(message.payload.data(), message.payload.size());
    const std::string safe =
        format_ == LogFormat::kJson ? text::QuoteJson(payload) : EscapeControls(payload);
    message.payload = safe;
    formatter_->format(message, lines);
  }

  const LogFormat format_;
  int64_t dropped_ = 0;
};

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
constexpr const char* kJsonPattern =
    R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})";

// Most errors that gRPC and protobuf report are mistakes of clients, which could flood the log.
// They are therefore logged at debug level, unless they end the process.
void LogFromGrpc(gpr_log_func_args* args) {
  const bool fatal = absl::StartsWith(args->message, "assertion failed");
  spdlog::log(fatal ? spdlog::level::critical : spdlog::level::debug, "grpc: {}", args->message);
}

void LogFromProtobuf(google::protobuf::LogLevel level, const char*, int,
                     const std::string& message) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  spdlog::log(fatal ? spdlog::level::critical : spdlog::level::debug, "protobuf: {}", message);
}

}  // namespace

void StartLogging(LogFormat format, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("attendant", std::make_shared<StderrSink>(format));
  logger->set_pattern(format == LogFormat::kJson ? kJsonPattern : kTextPattern,
                      spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(LogFromGrpc);
  google::protobuf::SetLogHandler(LogFromProtobuf);
}

std::string EscapeControls(const std::string& message) {
  std::string out;
  out.reserve(message.size());
  for (const char c : message) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += absl::StrFormat("\\x%02x", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace attendant::server
