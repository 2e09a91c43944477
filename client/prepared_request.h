// PreparedRequest, a request that is sent many times, such as one of a load test.
#pragma once

#include <cstdint>
#include <memory>

#include "client/messages.h"

namespace attendant::client {

// A request that has been serialised once and can be sent any number of times without being copied.
// Immutable and thread-safe; copies share the bytes.
class PreparedRequest {
 public:
  static PreparedRequest Attend(AttendRequest request);
  static PreparedRequest Encode(EncodeRequest request);

  // Returns the size of the serialised message.
  int64_t bytes() const;

  // For use inside this library only.
  struct Wire;
  const Wire& wire() const;

 private:
  friend class Client;
  std::shared_ptr<const Wire> wire_;
};

}  // namespace attendant::client
