// Requests of 1 sequence of 2 tokens of 4 values, for tests that do not care what is in them.
#pragma once

#include "client/client.h"

namespace attendant::client {

inline constexpr float kSmallValues[] = {1, 0, 1, 0, 0, 2, 0, 2};

inline AttendRequest SmallAttend() {
  AttendRequest request;
  request.hidden_states = FloatTensor({1, 2, 4}, kSmallValues);
  return request;
}

inline EncodeRequest SmallEncode() {
  EncodeRequest request;
  request.hidden_states = FloatTensor({1, 2, 4}, kSmallValues);
  return request;
}

}  // namespace attendant::client
