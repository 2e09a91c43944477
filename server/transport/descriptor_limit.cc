#include "server/transport/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace attendant::server {

int64_t RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  constexpr rlim_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

int64_t MostConnections(int64_t descriptors) { return std::max<int64_t>(descriptors / 4, 1); }

}  // namespace attendant::server
