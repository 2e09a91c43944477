// Asks a running attendant-server for the context layer of its worked example.
//
//   attend [HOST:PORT]
#include <cstdio>
#include <utility>
#include <vector>

#include "client/client.h"

namespace client = attendant::client;

int main(int argc, char** argv) {
  const client::Client server = client::Client::Connect(argc > 1 ? argv[1] : "localhost:8001");

  client::AttendRequest request;
  request.model = "worked-example";
  request.hidden_states = client::FloatTensor({1, 3, 4}, {1, 0, 1, 0,  //
                                                          0, 2, 0, 2,  //
                                                          1, 1, 1, 1});
  const auto result = server.Attend(std::move(request), {.timeout = absl::Seconds(5)});
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    return 1;
  }
  const std::vector<float> context = client::ToFloats(result->output).value();
  const auto width = static_cast<size_t>(result->output.shape.back());
  for (size_t i = 0; i < context.size(); ++i) {
    std::printf("%f%c", context[i], (i + 1) % width == 0 ? '\n' : ' ');
  }
  return 0;
}
