// PreparedRequest, a request that is sent many times, such as one of a load test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/messages.h"

namespace attendant::client {

// A request that is serialized once and can be sent any number of times without a copy. Immutable
// and thread-safe; copies share the bytes.
class PreparedRequest {
 public:
  static PreparedRequest Attend(AttendRequest request);
  static PreparedRequest Encode(EncodeRequest request);
  // Returns a request of any unary method, "/package.Service/Method", with a serialized message.
  // Its responses have no Execution: SendAsync returns an empty one.
  static PreparedRequest Raw(std::string method, const std::string& message);

  // Returns the size of the serialized message.
  int64_t bytes() const;

  // For use inside this library only.
  struct Wire;
  const Wire& wire() const;

 private:
  friend class Client;
  std::shared_ptr<const Wire> wire_;
};

// An unparsed response.
struct RawAnswer {
  Execution execution;
  std::string content;  // the serialized message without its `execution`
};

}  // namespace attendant::client
