// Requests and calls of Encode that tests have in common.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {

// Returns the response, and expects that there is one.
inline v1::EncodeResponse EncodeOk(TestServer& server, const v1::EncodeRequest& request) {
  v1::EncodeResponse response;
  const grpc::Status status = server.Encode(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

// Returns a request for the pooled vectors, and the rows, of two sequences of six and four tokens.
// `ids` are [2, 6].
inline v1::EncodeRequest TwoSequences(const std::string& model, const std::vector<int64_t>& ids) {
  v1::EncodeRequest request;
  request.set_model(model);
  *request.mutable_token_ids() = IntegerTensor({2, 6}, ids, v1::INT32);
  request.add_lengths(6);
  request.add_lengths(4);
  request.set_return_pooled(true);
  return request;
}

}  // namespace attendant::server
