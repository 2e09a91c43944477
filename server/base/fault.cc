#include "server/base/fault.h"

#include <new>

#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

// Made before they are needed, when there may be no memory to make them.
const absl::Status& NoMemory() {
  static const auto& status =
      *new absl::Status(Refused(Refusal::kMemory, "cannot allocate the request's buffers"));
  return status;
}

const absl::Status& Unexpected() {
  static const auto& status = *new absl::Status(absl::InternalError("internal error"));
  return status;
}

}  // namespace

absl::Status StatusOfException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (...) {
    return Unexpected();
  }
}

void PrepareFaults() {
  NoMemory();
  Unexpected();
}

}  // namespace attendant::server
