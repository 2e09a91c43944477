// FindBreaks, which finds changes of the protocol that break older clients.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <string>
#include <vector>

namespace attendant {

// Returns what is missing or different in `current`, one line each: messages, fields by number with
// their name, type and label, enum values, services, and methods with their request and response
// types. Additions are not breaks.
std::vector<std::string> FindBreaks(const google::protobuf::FileDescriptorSet& older,
                                    const google::protobuf::DescriptorPool& current);

}  // namespace attendant
