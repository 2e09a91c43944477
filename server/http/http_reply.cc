#include "server/http/http_reply.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace attendant::server {

HttpWaker::HttpWaker() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

HttpWaker::~HttpWaker() { close(event_); }

void HttpWaker::Wake() noexcept { eventfd_write(event_, 1); }

void HttpWaker::Reset() noexcept {
  eventfd_t unused;
  eventfd_read(event_, &unused);
}

}  // namespace attendant::server
