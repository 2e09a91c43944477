#include "tests/fuzz/fuzz_target.h"

namespace attendant {

absl::Span<const FuzzTarget> FuzzTargets() {
  static constexpr FuzzTarget kTargets[] = {
      {"request-codec", &FuzzRequestCodec},
      {"request", &FuzzRequest},
      {"safetensors", &FuzzSafetensors},
      {"config", &FuzzConfig},
      {"folder", &FuzzFolder},
      {"http", &FuzzHttp},
      {"infer-json", &FuzzInferJson},
      {"text-form", &FuzzTextForm},
      {"tokenizer", &FuzzTokenizer},
  };
  return kTargets;
}

}  // namespace attendant
