// The main function of the engine's tests. It first caps the instruction set if ATTENDANT_TEST_ISA
// names one.
#include <cstdlib>
#include <iostream>
#include <optional>

#include "absl/status/status.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"

int main(int argc, char** argv) {
  if (const char* name = std::getenv("ATTENDANT_TEST_ISA"); name != nullptr) {
    const std::optional<attendant::Isa> cap = attendant::ValueIn(attendant::IsaCaps(), name);
    const absl::Status status =
        cap ? attendant::CapIsa(*cap) : absl::InvalidArgumentError("unknown ATTENDANT_TEST_ISA");
    if (!status.ok()) {
      std::cerr << name << ": " << status << "\n";
      return EXIT_FAILURE;
    }
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
