// Responses of server reflection for the services of this process.
#pragma once

#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace attendant::server {

// Looks up the descriptors linked into the process. Thread-safe.
grpc::reflection::v1alpha::ServerReflectionResponse AnswerReflection(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request);

}  // namespace attendant::server
