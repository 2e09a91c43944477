// The main function of the engine's tests. It first caps the instruction set if ATTENDANT_TEST_ISA
// names one.
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"

int main(int argc, char** argv) {
  if (const char* name = std::getenv("ATTENDANT_TEST_ISA"); name != nullptr) {
    using attendant::Isa;
    const std::map<std::string, Isa> caps = {{"avx2", Isa::kAvx2},
                                             {"avx512", Isa::kAvx512},
                                             {"avx512_vnni", Isa::kAvx512Vnni},
                                             {"avx512_bf16", Isa::kAvx512Bf16}};
    const auto cap = caps.find(name);
    const absl::Status status = cap == caps.end()
                                    ? absl::InvalidArgumentError("unknown ATTENDANT_TEST_ISA")
                                    : attendant::CapIsa(cap->second);
    if (!status.ok()) {
      std::cerr << name << ": " << status << "\n";
      return EXIT_FAILURE;
    }
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
