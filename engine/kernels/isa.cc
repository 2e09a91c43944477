#include "engine/kernels/isa.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "engine/kernels/onednn.h"

namespace attendant {

void RefuseKernel(const char* needed) {
  std::fprintf(stderr,
               "fatal: a kernel for CPUs with %s was called; this CPU has %s (after any cap)\n",
               needed, EffectiveIsa().c_str());
  std::abort();
}

void RequireBf16Units() {
  static const bool has_units = HasBf16Units();
  if (!has_units) RefuseKernel(kIsasWithBf16Units);
}

void RequireAmxUnits() {
  static const bool has_units = HasAmxUnits();
  if (!has_units) RefuseKernel("amx");
}

std::string OneDnnVersion() {
  const dnnl::version_t* version = dnnl::version();
  return absl::StrCat(version->major, ".", version->minor, ".", version->patch);
}

}  // namespace attendant
