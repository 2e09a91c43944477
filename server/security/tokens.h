// Tokens, the secrets by which callers prove what they may do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

// A group of requests that a token may permit.
enum class TokenScope : uint8_t {
  kInfer = 1,    // every gRPC method, except those of health, which need no token
  kMetrics = 2,  // /metrics
};

// "infer", "metrics".
const char* Name(TokenScope scope);

// The tokens of a file. Only their SHA-256 hashes are known.
class Tokens {
 public:
  // Reads the text of a token file: a line for each token, such as
  //   infer,metrics 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  // with its scopes and the hash in hexadecimal digits. Empty lines and what follows a # do not
  // count. INVALID_ARGUMENT, with the number of the line but without its text, which may be a
  // secret, if a line is not such or if there is no token.
  static absl::StatusOr<Tokens> Parse(absl::string_view text);

  // Returns a name for the callers who have the token of an `authorization` header, such as "Bearer
  // secret": "token ", and some of its hash, which does not tell it. UNAUTHENTICATED: it has no
  // token of the file; PERMISSION_DENIED: the token has another scope. The time that it takes does
  // not depend on how much of a token is right.
  absl::StatusOr<std::string> Identify(absl::string_view authorization, TokenScope scope) const;

 private:
  using Hash = std::array<unsigned char, 32>;
  struct Entry {
    Hash hash;
    uint8_t scopes = 0;  // bits of TokenScope
  };

  // Returns the bits of the scopes of the header's token, whose hash is then in `hash`; 0 if it has
  // no token of the file.
  unsigned Find(absl::string_view authorization, Hash& hash) const;

  std::vector<Entry> entries_;
};

}  // namespace attendant::server
