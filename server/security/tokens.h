// Tokens, the secrets that authorize clients.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

// A group of requests that a token can authorize.
enum class TokenScope : uint8_t {
  kInfer = 1,    // all gRPC methods except health checks, which need no token
  kMetrics = 2,  // /metrics
};

// "infer", "metrics".
const char* Name(TokenScope scope);

// The tokens of a file, stored as SHA-256 hashes.
class Tokens {
 public:
  // Reads the text of a token file: a line for each token, such as
  //   infer,metrics 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  // with its scopes and the hash in hexadecimal digits. Ignores empty lines and comments after #.
  // Returns INVALID_ARGUMENT if a line is malformed or there is no token, with the line number but
  // not its text, which may be a secret.
  static absl::StatusOr<Tokens> Parse(absl::string_view text);

  // Returns a name for the clients that use the token of an `authorization` header such as "Bearer
  // secret": "token " and a part of its hash, which does not reveal it. Returns UNAUTHENTICATED
  // without a known token, and PERMISSION_DENIED if the token has another scope. Its run time does
  // not depend on how much of a token is correct.
  absl::StatusOr<std::string> Identify(absl::string_view authorization, TokenScope scope) const;

 private:
  using Hash = std::array<unsigned char, 32>;
  struct Entry {
    Hash hash;
    uint8_t scopes = 0;  // bits of TokenScope
  };

  // Returns the scope bits of the header's token and stores its hash in `hash`; 0 without a known
  // token.
  unsigned Find(absl::string_view authorization, Hash& hash) const;

  std::vector<Entry> entries_;
};

}  // namespace attendant::server
