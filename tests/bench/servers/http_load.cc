// http_load: calls an HTTP server on this machine from one thread, with kept connections, and
// measures. Reads a JSON document from stdin:
//   {"port": 8002, "requests": ["POST … HTTP/1.1\r\n…"], "seconds": 20, "warm_up": 1,
//    "callers": 8}                    a closed loop: each sends its next request after a response
//    "arrivals": [0.004, …]}          an open loop: the times at which requests are due, in seconds
// Prints {"latencies": [seconds of each good call], "failures": {"why": calls}}, without those of
// the warm-up. A latency begins when a request was due, so that one that had to wait for the sender
// or for a connection has waited.
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "http_connection.h"

namespace {

using Seconds = std::chrono::duration<double>;

constexpr size_t kMostConnections = 256;  // of an open loop; further requests wait
constexpr double kPatienceSeconds = 60;   // after the last arrival
constexpr int kEvents = 64;

struct Plan {
  int port;
  std::vector<std::string> requests;
  double seconds, warm_up;
  size_t callers;                // 0: an open loop
  std::vector<double> arrivals;  // ascending
};

Plan ReadPlan(std::istream& from) {
  const nlohmann::json document = nlohmann::json::parse(from);
  return {document.at("port"),
          document.at("requests"),
          document.at("seconds"),
          document.at("warm_up"),
          document.value("callers", size_t{0}),
          document.value("arrivals", std::vector<double>())};
}

struct Caller {
  explicit Caller(int port) : connection(port) {}
  HttpConnection connection;
  double due = 0;  // of the request that is under way
  bool idle = true;
};

class Load {
 public:
  explicit Load(const Plan& plan) : plan_(plan), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

  nlohmann::json Run() {
    for (size_t i = 0; i < plan_.callers; ++i) Begin(AddCaller(), Now());
    while (!Over()) {
      while (BeginDue()) continue;
      Wait();
    }
    for (const auto& caller : callers_) {
      if (plan_.callers == 0 && !caller->idle) Note(*caller, "no response in time");
    }
    return {{"latencies", latencies_}, {"failures", failures_}};
  }

 private:
  double Now() const { return Seconds(std::chrono::steady_clock::now() - start_).count(); }
  double end() const { return plan_.warm_up + plan_.seconds; }

  bool Over() const {
    const double now = Now();
    if (plan_.callers > 0) return now >= end();
    const bool idle = std::all_of(callers_.begin(), callers_.end(),
                                  [](const auto& caller) { return caller->idle; });
    return arrived_ == plan_.arrivals.size() && (idle || now > end() + kPatienceSeconds);
  }

  Caller& AddCaller() {
    callers_.push_back(std::make_unique<Caller>(plan_.port));
    Watch(*callers_.back());
    return *callers_.back();
  }

  void Watch(Caller& caller) {
    epoll_event event = {EPOLLIN, {.ptr = &caller}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, caller.connection.descriptor(), &event);
  }

  void Begin(Caller& caller, double due) {
    if (caller.connection.ended()) {
      caller.connection.Connect();
      Watch(caller);
    }
    caller.due = due;
    caller.idle = false;
    caller.connection.Send(plan_.requests[sent_++ % plan_.requests.size()]);
  }

  // Of an open loop: begins the next request if it is due and has a connection.
  bool BeginDue() {
    if (arrived_ == plan_.arrivals.size() || plan_.arrivals[arrived_] > Now()) return false;
    const auto found = std::find_if(callers_.begin(), callers_.end(),
                                    [](const auto& caller) { return caller->idle; });
    if (found == callers_.end() && callers_.size() == kMostConnections) return false;
    Begin(found != callers_.end() ? **found : AddCaller(), plan_.arrivals[arrived_++]);
    return true;
  }

  void Wait() {
    double wait = plan_.callers > 0 ? end() - Now() : 1;
    if (arrived_ < plan_.arrivals.size()) {
      const double ahead = plan_.arrivals[arrived_] - Now();
      if (ahead > 0) wait = ahead;  // else it waits for a connection
    }
    const timespec time = {static_cast<time_t>(std::max(wait, 0.0)),
                           static_cast<long>(1e9 * std::fmod(std::max(wait, 0.0), 1))};
    epoll_event events[kEvents];
    const int found = epoll_pwait2(epoll_, events, kEvents, &time, nullptr);
    for (int i = 0; i < found; ++i) Read(*static_cast<Caller*>(events[i].data.ptr));
  }

  void Read(Caller& caller) {
    const std::optional<std::string> outcome = caller.connection.Read();
    if (!outcome) return;
    if (caller.connection.ended()) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, caller.connection.descriptor(), nullptr);
    }
    if (caller.idle) return;  // the server ends a connection between two requests
    Note(caller, *outcome);
    caller.idle = true;
    if (plan_.callers > 0) Begin(caller, Now());
  }

  void Note(const Caller& caller, const std::string& failure) {
    const double now = Now();
    const bool counts =
        plan_.callers > 0 ? plan_.warm_up <= now && now < end() : plan_.warm_up <= caller.due;
    if (!counts) return;
    if (failure.empty()) {
      latencies_.push_back(now - caller.due);
    } else {
      ++failures_[failure];
    }
  }

  const Plan& plan_;
  const int epoll_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Caller>> callers_;
  size_t sent_ = 0, arrived_ = 0;
  std::vector<double> latencies_;
  std::map<std::string, int64_t> failures_;
};

}  // namespace

int main() {
  try {
    const Plan plan = ReadPlan(std::cin);
    if (plan.requests.empty()) throw std::runtime_error("expected requests; got none");
    std::cout << Load(plan).Run().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "http_load: " << error.what() << "\n";
    return 1;
  }
}
