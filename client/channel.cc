#include "client/channel.h"

#include <thread>

namespace attendant::client {

Channel::Hold::Hold(const Channel& channel) : channel_(channel) { ++channel.users_; }

Channel::Hold::~Hold() {
  if (channel_.Leave()) std::thread([last = &channel_] { delete last; }).detach();
}

std::shared_ptr<const Channel> Channel::Make(const std::shared_ptr<grpc::Channel>& channel) {
  return {new Channel(channel), [](const Channel* made) {
            if (made->Leave()) delete made;
          }};
}

}  // namespace attendant::client
