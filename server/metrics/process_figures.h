// Process statistics from the kernel. Thread-safe.
#pragma once

#include <cstdint>

namespace attendant::server {

int64_t ResidentBytes();    // memory
int64_t OpenDescriptors();  // excluding the one used for counting
double ProcessorSeconds();  // of all threads, in user and system mode

}  // namespace attendant::server
