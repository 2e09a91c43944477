// CallEntry, the arguments that a call starts with.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "server/account/request_account.h"
#include "server/admission/budget.h"
#include "server/admission/recent_size.h"
#include "server/request/quick_method.h"
#include "server/rpc/call/open_streams.h"

namespace attendant::server {

struct CallEntry {
  // These outlive the call.
  const MethodContext& context;
  RecentSize& recent;  // of the method
  grpc::CallbackServerContext& call;

  OpenStreams* open_streams = nullptr;  // of a stream; outlives it
  std::string peer = {};
  Budget::Hold place = {};                     // a slot, or for a stream a place among the streams
  Budget::Hold memory = {};                    // for a stream, the permit with which it receives
  std::optional<RequestAccount> account = {};  // none: the call counts in no metric
};

}  // namespace attendant::server
