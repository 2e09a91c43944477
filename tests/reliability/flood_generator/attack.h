// Attack, the bytes that one hostile connection sends.
#pragma once

#include <memory>
#include <string_view>

namespace attendant::flood {

class Attack {
 public:
  virtual ~Attack() = default;

  // The bytes to send next, valid until the next call; empty if there are none before more is
  // received. To be called when those of the last call have been sent.
  virtual std::string_view Next() = 0;

  // Takes received bytes, cut anywhere.
  virtual void Receive(std::string_view) {}

  // False for one that leaves everything in the socket, so that the server cannot send.
  virtual bool reads() const { return true; }
};

// Returns the attack of a new connection, or null if none has this name:
// - continuation: a header block without end; for an odd `slot` one huge value, else many small
// fields;
// - reset: calls, each reset at once;
// - settings, ping: frames that have to be acknowledged; the acknowledgements are not read;
// - health: keeps 100 health checks whose message has not arrived whole.
std::unique_ptr<Attack> MakeAttack(std::string_view name, int slot);

}  // namespace attendant::flood
