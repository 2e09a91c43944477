// What counting_copies.cc counts, in memory that a test shares with the server that it starts.
#pragma once

#include <atomic>
#include <cstdint>

namespace attendant::server {

struct CopyCounts {
  // The variable that names the file with the counts.
  static constexpr char kVariable[] = "COPY_COUNTS";
  // Shorter copies are not counted: parts of a body are longer, headers and rows of small models
  // are not.
  static constexpr int64_t kLeastBytes = 512;

  std::atomic<int64_t> bytes;
};

}  // namespace attendant::server
