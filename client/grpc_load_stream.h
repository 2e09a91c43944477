// The implementation of LoadStream, on gRPC's callback interface.
#pragma once

#include <memory>

#include "client/channel.h"
#include "client/load_stream.h"

namespace attendant::client {

// The timeout of `call` bounds each request.
std::unique_ptr<LoadStream> MakeLoadStream(std::shared_ptr<const Channel> channel,
                                           const CallOptions& call);

}  // namespace attendant::client
