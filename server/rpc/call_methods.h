// The methods that the server has.
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/rpc/call/call.h"

namespace attendant::server {

struct CallMethod {
  // What a call must have before its first read. kQueue: a slot, and room for its job.
  enum class Needs { kNothing, kSlot, kQueue, kStream };

  const char* service;  // its full name
  const char* name;
  Needs needs;  // kNothing: its calls count in no metric either
  std::shared_ptr<Call> (*make)(CallEntry entry);
};

absl::Span<const CallMethod> CallMethods();

// `path` is "/service/name". Null: there is no such method.
const CallMethod* FindCallMethod(absl::string_view path);

}  // namespace attendant::server
