// CallArgs, the arguments with which a call starts.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "server/account/request_recorder.h"
#include "server/admission/budget.h"
#include "server/admission/recent_size.h"
#include "server/request/inline_method.h"
#include "server/rpc/call/open_streams.h"

namespace attendant::server {

struct CallArgs {
  // Must outlive the call.
  const MethodContext& context;
  RecentSize& recent;  // of the method
  grpc::CallbackServerContext& call;

  OpenStreams* open_streams = nullptr;  // only of streams; outlives the call
  std::string peer = {};
  Budget::Reservation place = {};               // a slot, or a place among the streams
  Budget::Reservation memory = {};              // for a stream, its permit to receive
  std::optional<RequestRecorder> account = {};  // nullopt if the call counts in no metric
};

}  // namespace attendant::server
