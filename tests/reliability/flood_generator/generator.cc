#include "tests/reliability/flood_generator/generator.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace attendant::flood {
namespace {

constexpr size_t kReceiveBytes = 64 << 10;
constexpr int kRetryMilliseconds = 1;  // until a connection that could not begin is tried again
constexpr int kLookMilliseconds = 20;  // at the clock, if no socket is ready

}  // namespace

Generator::Generator(const Target& target, std::vector<std::string> sources, std::string attack)
    : target_(target),
      sources_(std::move(sources)),
      attack_(std::move(attack)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      slots_(sources_.size()),
      received_(kReceiveBytes) {
  if (epoll_ < 0) throw std::runtime_error(std::string("epoll_create1: ") + std::strerror(errno));
}

Generator::~Generator() { close(epoll_); }

Sent Generator::Run(std::chrono::duration<double> duration,
                    const volatile std::sig_atomic_t& stopped) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::vector<epoll_event> events(slots_.size());
  while (!stopped && Clock::now() - begin < duration) {
    const int patience = OpenAllClosed() ? kLookMilliseconds : kRetryMilliseconds;
    const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), patience);
    for (int event = 0; event < ready; ++event) {
      OnEvents(events[event].data.u32, events[event].events);
    }
  }
  sent_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return sent_;
}

bool Generator::OpenAllClosed() {
  bool all = true;
  for (size_t number = 0; number < slots_.size(); ++number) {
    if (slots_[number].connection == nullptr) Open(number);
    all = all && slots_[number].connection != nullptr;
  }
  return all;
}

void Generator::Open(size_t number) {
  Slot& slot = slots_[number];
  slot = {};
  slot.attack = MakeAttack(attack_, static_cast<int>(number));
  slot.connection = Connection::Begin(target_, sources_[number], slot.attack->reads());
  if (slot.connection == nullptr) return;
  epoll_event event = {};
  event.events = slot.events = EPOLLOUT;
  event.data.u32 = static_cast<uint32_t>(number);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, slot.connection->descriptor(), &event) != 0) {
    throw std::runtime_error(std::string("epoll_ctl: ") + std::strerror(errno));
  }
}

void Generator::OnEvents(size_t number, uint32_t events) {
  Slot& slot = slots_[number];
  if (!(slot.open ? Exchange(slot, events) : Advance(slot))) {
    slot.connection.reset();  // before the next one, which may need its port
    Open(number);
    return;
  }
  if (slot.open) Watch(number, Wanted(slot));
}

bool Generator::Advance(Slot& slot) {
  const size_t number = static_cast<size_t>(&slot - slots_.data());
  switch (slot.connection->Advance()) {
    case Connection::Progress::kOpen:
      slot.open = true;
      slot.unsent = slot.attack->Next();
      ++sent_.connections;
      break;
    case Connection::Progress::kWantsRead:
      Watch(number, EPOLLIN);
      break;
    case Connection::Progress::kWantsWrite:
      Watch(number, EPOLLOUT);
      break;
    case Connection::Progress::kClosed:
      return false;
  }
  return true;
}

bool Generator::Exchange(Slot& slot, uint32_t events) {
  if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) return false;
  if (events & EPOLLIN) {
    const ssize_t received = slot.connection->Receive(received_.data(), received_.size());
    if (received < 0) return false;
    slot.attack->Receive({received_.data(), static_cast<size_t>(received)});
    if (slot.unsent.empty()) slot.unsent = slot.attack->Next();
  }
  if (events & EPOLLOUT && !slot.unsent.empty()) {
    const ssize_t sent = slot.connection->Send(slot.unsent);
    if (sent < 0) return false;
    sent_.bytes += sent;
    slot.unsent.remove_prefix(static_cast<size_t>(sent));
    if (slot.unsent.empty()) slot.unsent = slot.attack->Next();
  }
  return true;
}

uint32_t Generator::Wanted(const Slot& slot) const {
  uint32_t events = EPOLLRDHUP;
  if (slot.attack->reads()) events |= EPOLLIN;
  if (!slot.unsent.empty()) events |= EPOLLOUT;
  return events;
}

void Generator::Watch(size_t number, uint32_t events) {
  Slot& slot = slots_[number];
  if (slot.events == events) return;
  slot.events = events;
  epoll_event event = {};
  event.events = events;
  event.data.u32 = static_cast<uint32_t>(number);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, slot.connection->descriptor(), &event);
}

}  // namespace attendant::flood
