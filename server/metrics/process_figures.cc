#include "server/metrics/process_figures.h"

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace attendant::server {

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t OpenDescriptors() {
  std::error_code error;  // given to each step, so that a vanishing entry does not throw
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  if (error) return 0;
  int64_t entries = 0;
  for (; !error && entry != end(entry); entry.increment(error)) ++entries;
  return entries - 1;  // the directory's own descriptor
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace attendant::server
