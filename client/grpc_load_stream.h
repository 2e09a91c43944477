// The stream that Client::OpenLoadStream returns.
#pragma once

#include <memory>

#include "client/channel.h"
#include "client/load_stream.h"

namespace attendant::client {

std::unique_ptr<LoadStream> MakeLoadStream(std::shared_ptr<const Channel> channel,
                                           const CallOptions& call);

}  // namespace attendant::client
