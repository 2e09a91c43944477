// A request that is sent many times, such as a load test's.
#pragma once

#include <cstdint>
#include <memory>

#include "client/messages.h"

namespace attendant::client {

// A request as it goes over the wire: made once, sent any number of times without being copied.
// Immutable; copies share.
class PreparedRequest {
 public:
  static PreparedRequest Attend(AttendRequest request);
  static PreparedRequest Encode(EncodeRequest request);

  // Bytes of the message.
  int64_t bytes() const;

  // For this library's own use.
  struct Wire;
  const Wire& wire() const;

 private:
  friend class Client;
  std::shared_ptr<const Wire> wire_;
};

}  // namespace attendant::client
