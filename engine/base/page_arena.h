// PageArena: memory for the packed weights of a model, in huge pages if the kernel supports them.
#pragma once

#include <cstdint>
#include <memory>

namespace attendant {

// Allocates adjacent blocks of memory from a few large chunks. A short batch reads all weights once
// and computes little with each, so with 4 KiB pages it spends considerable time on address
// translation: 16 tokens of BERT-base took 1.11 times as long in float32 and 1.13 times as long in
// bfloat16 (Zen 4, oneDNN 2.6.3).
//
// Copies share the chunks. A chunk lives as long as any arena or block that refers to it. Not
// thread-safe, but blocks may be used and freed on any thread.
class PageArena {
 public:
  // Returns `bytes` bytes with undefined content, aligned to 64. Pages that are never written take
  // no memory. Throws std::bad_alloc.
  std::shared_ptr<char> Allocate(int64_t bytes);

 private:
  struct Chunk {
    std::shared_ptr<char> memory;
    int64_t size = 0;
    int64_t used = 0;
  };
  // The next block is allocated here if it fits.
  std::shared_ptr<Chunk> chunk_ = std::make_shared<Chunk>();
};

}  // namespace attendant
