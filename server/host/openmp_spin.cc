#include "server/host/openmp_spin.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

namespace attendant::server {
namespace {

// Between two parallel regions of a batch a worker should be there at once; between two batches it
// should give its core to gRPC. 10,000 rounds are a few tenths of a millisecond. With libgomp's
// default of 300,000 and other work on the two cores, minilm-l6 with 8 callers served a third of
// the tokens/s (1,200 against 3,100; 0 to 10,000 rounds were alike, and 0 cost a lone caller 20 to
// 30 %).
constexpr const char* kSpinCount = "10000";

}  // namespace

void LimitOpenMpSpinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  char program[PATH_MAX] = {};
  // Its real path rather than /proc/self/exe, so that `ps` and `top` show the name.
  if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0) return;
  setenv("GOMP_SPINCOUNT", kSpinCount, 1);
  execv(program, argv);
}

}  // namespace attendant::server
