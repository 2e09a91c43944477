// The fuzzer: fuzz TARGET [option of libFuzzer or corpus folder]…
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace {

const attendant::FuzzTarget* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (const attendant::FuzzTarget& candidate : attendant::FuzzTargets()) {
    if (*argc > 1 && std::string((*argv)[1]) == candidate.name) target = &candidate;
  }
  if (target == nullptr) {
    std::fprintf(stderr, "the first argument has to be one of");
    for (const attendant::FuzzTarget& candidate : attendant::FuzzTargets()) {
      std::fprintf(stderr, " %s", candidate.name);
    }
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  // The library reads the arguments after this one.
  (*argv)[1] = (*argv)[0];
  ++*argv;
  --*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string wrong = target->run({reinterpret_cast<const char*>(data), size});
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", wrong.c_str());
  std::abort();
}
