#include "server/security/tokens.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "engine/base/names.h"

namespace attendant::server {
namespace {

constexpr Named<TokenScope> kScopes[] = {{"infer", TokenScope::kInfer},
                                         {"metrics", TokenScope::kMetrics}};

// Returns the bits of the scopes; 0 if one of them is unknown.
uint8_t ParseScopes(absl::string_view text) {
  uint8_t scopes = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::optional<TokenScope> scope = ValueIn(kScopes, part);
    if (!scope) return 0;
    scopes |= static_cast<uint8_t>(*scope);
  }
  return scopes;
}

// Returns whether `text` is a hash in hexadecimal digits, which is then in `hash`.
bool ParseHash(absl::string_view text, absl::Span<unsigned char> hash) {
  size_t size = 0;
  return text.size() == 2 * hash.size() &&
         OPENSSL_hexstr2buf_ex(hash.data(), hash.size(), &size, std::string(text).c_str(), '\0') ==
             1;
}

}  // namespace

const char* Name(TokenScope scope) { return NameIn(kScopes, scope); }

absl::StatusOr<Tokens> Tokens::Parse(absl::string_view text) {
  Tokens tokens;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    Entry entry;
    if (words.size() == 2) entry.scopes = ParseScopes(words[0]);
    if (entry.scopes == 0 || !ParseHash(words[1], absl::MakeSpan(entry.hash))) {
      return absl::InvalidArgumentError(
          absl::StrCat("--token-file: line ", number,
                       ": expected scopes (infer, metrics, or both with a comma between them), a "
                       "space, and the SHA-256 of the token in 64 hexadecimal digits"));
    }
    tokens.entries_.push_back(entry);
  }
  if (tokens.entries_.empty()) {
    return absl::InvalidArgumentError("--token-file: expected at least one token; got none");
  }
  return tokens;
}

unsigned Tokens::Find(absl::string_view authorization, Hash& hash) const {
  constexpr absl::string_view kScheme = "bearer ";
  const bool bearer = absl::StartsWithIgnoreCase(authorization, kScheme);
  const absl::string_view token =
      absl::StripAsciiWhitespace(bearer ? authorization.substr(kScheme.size()) : "");
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  unsigned scopes = 0;
  for (const Entry& entry : entries_) {  // all of them, also after a match
    const bool same = CRYPTO_memcmp(hash.data(), entry.hash.data(), hash.size()) == 0;
    scopes |= same ? entry.scopes : 0u;
  }
  return token.empty() ? 0 : scopes;
}

absl::StatusOr<std::string> Tokens::Identify(absl::string_view authorization,
                                             TokenScope scope) const {
  constexpr size_t kNameBytes = 8;
  Hash hash;
  const unsigned scopes = Find(authorization, hash);
  if (scopes == 0) {
    return absl::UnauthenticatedError("the call needs a valid bearer token");
  }
  if ((scopes & static_cast<unsigned>(scope)) == 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("the bearer token lacks the scope ", Name(scope)));
  }
  const absl::string_view bytes(reinterpret_cast<const char*>(hash.data()), kNameBytes);
  return absl::StrCat("token ", absl::BytesToHexString(bytes));
}

}  // namespace attendant::server
