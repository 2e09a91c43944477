#include "server/cross_kv/cross_kv_store.h"

#include <sys/random.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "server/admission/admission.h"
#include "server/metrics/refusal.h"
#include "server/models/model_lookup.h"
#include "server/models/sequence_state.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr size_t kHandleBytes = 16;
constexpr size_t kMostRetired = 4096;  // handles

LayerShape ShapeOf(const CrossKvOrigin& origin) {
  const ModelDescription& model = origin.model->encoder->description();
  return model.layer_shape(model.weight_set(origin.layer));
}

// A client that can guess handles can use what others have registered.
std::string RandomHandle() {
  char bytes[kHandleBytes];
  if (getentropy(bytes, sizeof(bytes)) != 0) std::abort();  // no kernel that we run on
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

}  // namespace

int64_t RegisteredCrossKv::PredictBytes(const CrossKvOrigin& origin) {
  const LayerShape layer = ShapeOf(origin);
  const TokenLayout& layout = origin.layout;
  const int64_t widths = layer.key_columns() + layer.value_columns();
  return kBookkeepingBytes + layout.tokens() * widths * static_cast<int64_t>(sizeof(float)) +
         static_cast<int64_t>(layout.positions.size() * sizeof(int32_t) +
                              layout.cu_seqlens.size() * sizeof(int32_t) +
                              layout.runs.size() * sizeof(RowRun));
}

RegisteredCrossKv::RegisteredCrossKv(CrossKvOrigin origin,
                                     std::shared_ptr<HeldBytes::Totals> totals,
                                     Budget::Reservation&& memory)
    : origin_(std::move(origin)),
      key_width_(ShapeOf(origin_).key_columns()),
      value_width_(ShapeOf(origin_).value_columns()),
      keys_(origin_.layout.tokens() * key_width_),
      values_(origin_.layout.tokens() * value_width_),
      held_(PredictBytes(origin_), std::move(totals), std::move(memory)) {}

HeldBytes::HeldBytes(int64_t bytes, std::shared_ptr<Totals> totals, Budget::Reservation memory)
    : bytes_(bytes), totals_(std::move(totals)), memory_(std::move(memory)) {
  totals_->bytes.fetch_add(bytes_);
  totals_->holders.fetch_add(1);
}

HeldBytes::~HeldBytes() {
  totals_->bytes.fetch_sub(bytes_);
  totals_->holders.fetch_sub(1);
}

absl::Status CrossKvStore::TakeRoom(const char* what, int64_t bytes, Budget::Reservation& room) {
  const int64_t registered = registered_->bytes.load(), sequences = sequences_->bytes.load();
  const bool fits = bytes <= max_bytes_ - registered - sequences;
  // Charged to no peer: it outlives the call, and other clients may use its handle.
  const Budget::ReservationRequest request = {"", bytes, HeldFor::kRegistered};
  if (fits && (memory_ == nullptr || memory_->TryTake(request, room) == Budget::Answer::kTaken)) {
    return absl::OkStatus();
  }
  const std::string need = absl::StrCat("this ", what, " needs ", bytes);
  if (fits) return MemoryFull(*memory_, 0, need);
  if (bytes > max_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(need, " bytes; the server has ", max_bytes_,
                                                   " for all of them (--max-registered-bytes)"));
  }
  return RefusedFull(Refusal::kRegistered, "space for registered memories and sequence states",
                     registered + sequences, max_bytes_, "bytes, --max-registered-bytes", need);
}

absl::StatusOr<std::unique_ptr<HeldBytes>> CrossKvStore::Hold(int64_t bytes) {
  EvictExpired();
  Budget::Reservation room;
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(TakeRoom("sequence state", bytes, room));
  return std::make_unique<HeldBytes>(bytes, sequences_, std::move(room));
}

absl::StatusOr<std::shared_ptr<RegisteredCrossKv>> CrossKvStore::Reserve(CrossKvOrigin origin) {
  const int64_t bytes = RegisteredCrossKv::PredictBytes(origin);
  EvictExpired();
  Budget::Reservation room;
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(TakeRoom("memory", bytes, room));
  try {
    return std::make_shared<RegisteredCrossKv>(std::move(origin), registered_, std::move(room));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes for the memory"));
  }
}

CrossKvStore::Registration CrossKvStore::Add(std::shared_ptr<const RegisteredCrossKv> cross_kv,
                                             absl::Duration age) {
  Registration registration{RandomHandle(), cross_kv->bytes(), clock_.Now() + age};
  EvictExpired();
  Entry entry = {std::move(cross_kv), registration.expires};  // freed without the lock
  absl::MutexLock lock(&mutex_);
  expiries_.emplace(registration.expires, registration.handle);
  if (entry.cross_kv->origin().model->retired->load()) {
    Retire(registration.handle, entry);
  } else {
    entries_[registration.handle] = std::move(entry);
  }
  return registration;
}

absl::StatusOr<std::shared_ptr<const RegisteredCrossKv>> CrossKvStore::Find(
    const std::string& handle) {
  EvictExpired();
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return Missing(handle);
  return found->second.cross_kv;
}

absl::StatusOr<int64_t> CrossKvStore::Drop(const std::string& handle) {
  EvictExpired();
  Entry dropped;  // freed without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return Missing(handle);
  dropped = std::move(found->second);
  expiries_.erase({dropped.expires, handle});
  entries_.erase(found);
  return dropped.cross_kv->bytes();
}

absl::Status CrossKvStore::Missing(const std::string& handle) const {
  const auto found = retired_.find(handle);
  if (found != retired_.end()) return RetiredModel("memory_handle", found->second);
  return NotFound("memory_handle", "expired, dropped or never registered", "call PutMemory again");
}

void CrossKvStore::Retire(const std::string& handle, const Entry& entry) {
  if (retired_.size() < kMostRetired) {
    retired_[handle] = entry.cross_kv->origin().model->name;
  } else {
    expiries_.erase({entry.expires, handle});
  }
}

void CrossKvStore::EvictRetired() {
  std::vector<Entry> evicted;  // freed without the lock
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> handles;
  for (const auto& [handle, entry] : entries_) {
    if (entry.cross_kv->origin().model->retired->load()) handles.push_back(handle);
  }
  for (const std::string& handle : handles) {
    const auto entry = entries_.find(handle);
    Retire(handle, entry->second);
    evicted.push_back(std::move(entry->second));
    entries_.erase(entry);
  }
}

CrossKvStoreCounts CrossKvStore::counts() {
  EvictExpired();
  absl::MutexLock lock(&mutex_);
  return {static_cast<int64_t>(entries_.size()), registered_->bytes.load(),
          sequences_->holders.load(), sequences_->bytes.load()};
}

void CrossKvStore::EvictExpired() {
  const absl::Time now = clock_.Now();
  std::vector<Entry> expired;  // freed without the lock
  absl::MutexLock lock(&mutex_);
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const auto entry = entries_.find(expiries_.begin()->second);
    if (entry != entries_.end()) expired.push_back(std::move(entry->second));
    entries_.erase(expiries_.begin()->second);
    retired_.erase(expiries_.begin()->second);
    expiries_.erase(expiries_.begin());
  }
}

}  // namespace attendant::server
