// The counters of the micro-benchmarks, which are rates: "flops", "bytes" or "elements".
#pragma once

#include <benchmark/benchmark.h>

namespace attendant::bench {

// Returns the rate of this amount for each iteration.
inline benchmark::Counter PerSecond(double amount) {
  return {amount, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000};
}

}  // namespace attendant::bench
