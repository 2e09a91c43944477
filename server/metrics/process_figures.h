// Figures of the process, from the kernel. Any thread.
#pragma once

#include <cstdint>

namespace attendant::server {

int64_t ResidentBytes();    // memory
int64_t OpenDescriptors();  // without the one that counting takes
double ProcessorSeconds();  // of all threads, in user and system mode

}  // namespace attendant::server
