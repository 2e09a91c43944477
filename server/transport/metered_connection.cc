#include "server/transport/metered_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "server/base/clock.h"
#include "server/base/fault.h"
#include "server/base/timer.h"

namespace attendant::server {
namespace {

// The budget is asked for this many bytes at a time.
constexpr int64_t kStep = UnfinishedMessages::kFirstWindow;
// Another call ends for each so many bytes without room.
constexpr int64_t kEndedFor = int64_t{512} << 10;
constexpr int64_t kMostUncharged = int64_t{4} << 20;
// By then, the call has usually taken over a completed message.
constexpr absl::Duration kGiveBackDelay = absl::Milliseconds(20);

std::optional<uint64_t> NumberOf(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

}  // namespace

MeteredConnection::Receiver::Receiver(std::shared_ptr<MeteredConnection> connection,
                                      ReceivingCall call)
    : connection_(std::move(connection)) {
  absl::MutexLock lock(&connection_->mutex_);
  connection_->calls_.emplace(connection_->last_id_ + 1, std::move(call));
  id_ = ++connection_->last_id_;
}

MeteredConnection::Receiver::~Receiver() {
  std::map<uint64_t, ReceivingCall>::node_type call;  // destroyed without the lock
  absl::MutexLock lock(&connection_->mutex_);
  call = connection_->calls_.extract(id_);
  connection_->GiveBackSoon();
}

void MeteredConnection::Receiver::SetAllowance(int64_t bytes) {
  absl::MutexLock lock(&connection_->mutex_);
  connection_->calls_.find(id_)->second.allowance = bytes;
}

int64_t MeteredConnection::Receiver::received() const {
  absl::MutexLock lock(&connection_->mutex_);
  return connection_->meter_.messages().largest();
}

void MeteredConnection::Receiver::TakeOver(int64_t bytes, Budget::Reservation& hold) {
  absl::MutexLock lock(&connection_->mutex_);
  const int64_t spare = connection_->held_.amount() - connection_->Excess();
  connection_->held_.Give(std::min(spare, bytes - hold.amount()), hold);
}

MeteredConnection::MeteredConnection(int socket, bool encrypted, std::string name)
    : name_(std::move(name)),
      encrypted_(encrypted),
      socket_(socket),
      number_(NumberOf(socket)),
      meter_(RealClock().Now()) {}

bool MeteredConnection::HasSocket() const { return NumberOf(socket_) == number_; }

void MeteredConnection::Cut() {
  cut_ = true;  // first, because another thread observes the end
  if (!HasSocket()) return;
  // Resets the connection once all descriptors are closed. Otherwise the client could wait forever
  // for a window update.
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  shutdown(socket_, SHUT_RDWR);
}

bool MeteredConnection::Receive(absl::string_view bytes) noexcept {
  absl::MutexLock lock(&mutex_);
  bool accepted = false;
  // Without memory to meter the connection, it is cut.
  Guarded([&] {
    mutex_.AssertHeld();
    accepted = !closed_ && meter_.Receive(bytes, RealClock().Now()) && ChargeExcess();
  }).IgnoreError();
  return accepted;
}

void MeteredConnection::Send(absl::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  meter_.Send(bytes);
  dropped_ = std::min(dropped_, meter_.messages().beyond_first_windows());
  GiveBackSoon();
}

void MeteredConnection::Close() {
  Budget::Reservation held;  // given back without the lock
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  held = std::move(held_);
}

int64_t MeteredConnection::Excess() const {
  int64_t bytes = meter_.messages().beyond_first_windows() - dropped_;
  if (bytes <= 0) return 0;
  for (const auto& [id, call] : calls_) {
    bytes -= std::max<int64_t>(0, call.allowance - UnfinishedMessages::kFirstWindow);
  }
  return std::max<int64_t>(0, bytes);
}

bool MeteredConnection::IsAwaited() const {
  return std::any_of(calls_.begin(), calls_.end(),
                     [](const auto& call) { return call.second.give_up != nullptr; });
}

bool MeteredConnection::ChargeExcess() {
  dropped_ = std::min(dropped_, meter_.messages().beyond_first_windows());
  const int64_t excess = Excess();
  if (excess <= held_.amount()) {
    GiveBackSoon();
    return true;
  }
  const absl::Status status = Charge((excess + kStep - 1) / kStep * kStep);
  if (status.ok()) return true;
  const int64_t uncharged = excess - held_.amount();
  EndCalls(uncharged, status);
  return uncharged <= kMostUncharged;
}

absl::Status MeteredConnection::Charge(int64_t bytes) {
  if (!IsAwaited()) {
    const Budget::Answer answer = held_.Change(bytes, HeldFor::kReceiving);
    return answer == Budget::Answer::kTaken && !held_.empty()
               ? absl::OkStatus()
               : absl::ResourceExhaustedError("");  // that no call gets
  }
  const ReceivingCall& oldest = calls_.begin()->second;
  const bool one_peer = std::all_of(calls_.begin(), calls_.end(), [&](const auto& call) {
    return call.second.peer == oldest.peer;
  });
  // It is unknown which message belongs to which call.
  const std::string peer = one_peer ? oldest.peer : name_.substr(0, name_.find(' '));
  // A single call on its connection is charged as if its allowance grew.
  const int64_t exempt = calls_.size() == 1 ? oldest.allowance : 0;
  return oldest.admission.ChargeReceived({peer, bytes, HeldFor::kReceiving}, exempt, held_);
}

void MeteredConnection::EndCalls(int64_t uncharged, const absl::Status& status) {
  std::vector<std::function<void(const absl::Status&)>> ending;
  // The newest messages probably belong to the newest calls, but some calls receive nothing.
  int64_t to_end = meter_.messages().NewestHolding(uncharged) + uncharged / kEndedFor;
  for (auto newest = calls_.rbegin(); newest != calls_.rend() && to_end > 0; ++newest, --to_end) {
    if (newest->second.give_up == nullptr) continue;
    ending.push_back(std::exchange(newest->second.give_up, nullptr));
  }
  if (ending.empty()) return;
  const auto held = std::make_shared<Budget::Reservation>();  // released by the timer
  if (!IsAwaited()) {
    // Now, because other connections would find no room and end their calls too until these have
    // ended.
    *held = std::move(held_);
    dropped_ += held->amount();
    held->Vacate();
  }
  SharedTimer().Set(RealClock().Now(), [ending = std::move(ending), held, status] {
    for (const auto& give_up : ending) give_up(status);
  });
}

void MeteredConnection::GiveBackSoon() noexcept {
  if (gives_back_ || held_.empty() || held_.amount() <= Excess()) return;
  // If there is no memory for that, the next event tries it again.
  Guarded([&] {
    mutex_.AssertHeld();
    SharedTimer().Set(RealClock().Now() + kGiveBackDelay,
                      [self = shared_from_this()] { self->GiveBack(); });
    gives_back_ = true;
  }).IgnoreError();
}

void MeteredConnection::GiveBack() {
  Budget::Reservation spare;  // given back without the lock
  absl::MutexLock lock(&mutex_);
  gives_back_ = false;
  // If there is no memory for that, the next event tries it again.
  Guarded([&] {
    mutex_.AssertHeld();
    held_.Give(held_.amount() - Excess(), spare);
  }).IgnoreError();
}

}  // namespace attendant::server
