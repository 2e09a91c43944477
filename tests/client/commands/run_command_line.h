// Function that runs attendant-client inside a test.
#pragma once

#include <string>
#include <vector>

namespace attendant::client {

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome RunWith(const std::vector<std::string>& arguments);

}  // namespace attendant::client
