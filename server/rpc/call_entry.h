// CallEntry, the arguments that the reactor of a call starts with.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

#include "server/admission/budget.h"
#include "server/admission/recent_size.h"
#include "server/request/quick_method.h"
#include "server/rpc/call/request_end.h"

namespace attendant::server {

struct CallEntry {
  // These outlive the call.
  const MethodContext& context;
  RecentSize& recent;  // of the method
  grpc::CallbackServerContext& call;

  std::string peer;
  Budget::Hold place;   // a slot, or for a stream a place among the streams
  Budget::Hold memory;  // for a stream, the permit with which it receives
  RequestAccount account;
};

}  // namespace attendant::server
