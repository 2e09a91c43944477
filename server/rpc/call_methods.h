// The table of the server's gRPC methods.
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/rpc/call/call.h"

namespace attendant::server {

struct CallMethod {
  // What a call needs before its first read. kQueue: a slot, and space in the queue for its job.
  enum class Needs { kNothing, kSlot, kQueue, kStream };

  const char* service;  // full name
  const char* name;
  Needs needs;  // kNothing: its calls are not counted in metrics either
  std::shared_ptr<Call> (*make)(CallArgs entry);
};

absl::Span<const CallMethod> CallMethods();

// `path` is "/service/name". Returns null if there is no such method.
const CallMethod* FindCallMethod(absl::string_view path);

}  // namespace attendant::server
