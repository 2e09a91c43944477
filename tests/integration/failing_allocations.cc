// A library to preload into attendant-server. It makes an allocation of the server's own code fail.
//
// Only what the server's own code asks for fails, by itself or through the standard library and
// Abseil. gRPC's core aborts the process if it gets no memory, and neither the rest of gRPC nor
// protobuf, prometheus-cpp and spdlog say that they survive an exception. Whose an allocation is
// says the stack: the first function that belongs neither to those two libraries nor to a template
// of theirs. As the program has its symbols, a function is known by its name.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "tests/integration/allocation_faults.h"
#include "tests/integration/shared_with_server.h"

namespace {

using attendant::server::AllocationFaults;
using attendant::server::MapFromEnvironment;

enum class Owner { kServer, kLanguage, kOther };

struct Range {
  uintptr_t begin;
  uintptr_t end;
  Owner owner;
};

struct Code {
  std::vector<Range> ranges;  // in order
  uintptr_t program = 0;      // where the program is loaded
};

AllocationFaults* faults = nullptr;  // null: none is set, so that nothing fails
const Code* code = nullptr;

Owner OwnerOfFunction(std::string_view name) {
  if (name.find("9attendant") != name.npos) return Owner::kServer;
  for (const char* start : {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZN4absl", "_ZNK4absl"}) {
    if (name.substr(0, std::strlen(start)) == start) return Owner::kLanguage;
  }
  return Owner::kOther;
}

// The functions of the program, which is loaded at `base`.
void AddProgram(uintptr_t base, std::vector<Range>& ranges) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  fstat(file, &status);
  void* const mapped =
      mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  const char* const bytes = static_cast<const char*>(mapped);
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(bytes);
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header.e_shoff);
  for (int i = 0; i < header.e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(bytes + sections[i].sh_offset);
    const char* const names = bytes + sections[sections[i].sh_link].sh_offset;
    for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      const Elf64_Sym& symbol = symbols[s];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0) continue;
      const uintptr_t begin = base + symbol.st_value;
      ranges.push_back({begin, begin + symbol.st_size, OwnerOfFunction(names + symbol.st_name)});
    }
  }
  munmap(mapped, static_cast<size_t>(status.st_size));
}

int AddObject(dl_phdr_info* object, size_t, void* to) {
  auto& all = *static_cast<Code*>(to);
  const std::string_view name = object->dlpi_name;
  if (name.empty() && all.program == 0) {
    all.program = object->dlpi_addr;
    AddProgram(object->dlpi_addr, all.ranges);
    return 0;
  }
  const bool is_language = name.find("libstdc++") != name.npos ||
                           name.find("libabsl_") != name.npos ||
                           name.find("failing_allocations") != name.npos;
  if (!is_language) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    all.ranges.push_back({begin, begin + segment.p_memsz, Owner::kLanguage});
  }
  return 0;
}

Owner OwnerOfAddress(uintptr_t address) {
  const auto after = std::upper_bound(
      code->ranges.begin(), code->ranges.end(), address,
      [](uintptr_t one, const Range& range) { return one < range.begin; });
  if (after == code->ranges.begin()) return Owner::kOther;
  const Range& range = *std::prev(after);
  return address < range.end ? range.owner : Owner::kOther;
}

// Returns whose code has asked for the current allocation of this thread.
Owner OwnerOfAllocation() {
  Owner owner = Owner::kOther;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* to) {
        // The instruction before the return address, as that may be another function's already.
        *static_cast<Owner*>(to) = OwnerOfAddress(_Unwind_GetIP(frame) - 1);
        return *static_cast<Owner*>(to) == Owner::kLanguage ? _URC_NO_REASON
                                                            : _URC_NORMAL_STOP;
      },
      &owner);
  return owner;
}

bool Fails() {
  if (faults == nullptr || faults->until_failure <= 0) return false;
  return OwnerOfAllocation() == Owner::kServer && --faults->until_failure == 0;
}

__attribute__((constructor)) void Begin() {
  AllocationFaults* const settings = MapFromEnvironment<AllocationFaults>();
  if (settings == nullptr) return;
  auto* const all = new Code;
  dl_iterate_phdr(AddObject, all);
  std::sort(all->ranges.begin(), all->ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  code = all;
  faults = settings;
}

void* Aligned(size_t alignment, size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

}  // namespace

void* operator new(size_t bytes) {
  void* const memory = Fails() ? nullptr : std::malloc(std::max<size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  void* const memory = Fails() ? nullptr : Aligned(static_cast<size_t>(alignment), bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
// From which the engine's buffers come.
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return Fails() ? nullptr : Aligned(alignment, bytes);
}
