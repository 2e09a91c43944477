// PreparedRequest, a request that is sent many times, such as one of a load test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/messages.h"

namespace attendant::client {

// A request that has been serialised once and can be sent any number of times without being copied.
// Immutable and thread-safe; copies share the bytes.
class PreparedRequest {
 public:
  static PreparedRequest Attend(AttendRequest request);
  static PreparedRequest Encode(EncodeRequest request);
  // Returns a request of any unary method, "/package.Service/Method", with its serialised message.
  // Its answers have no Execution: SendAsync gives an empty one.
  static PreparedRequest Raw(std::string method, const std::string& message);

  // Returns the size of the serialised message.
  int64_t bytes() const;

  // For use inside this library only.
  struct Wire;
  const Wire& wire() const;

 private:
  friend class Client;
  std::shared_ptr<const Wire> wire_;
};

// An answer as it came.
struct RawAnswer {
  Execution execution;
  std::string content;  // the serialised message without its `execution`
};

}  // namespace attendant::client
