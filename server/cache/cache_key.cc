#include "server/cache/cache_key.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <cstdlib>
#include <new>

namespace attendant::server {
namespace {

enum class Numbers : int64_t { kEqual, kAscending, kAny };

Numbers FormOf(absl::Span<const int32_t> numbers) {
  const auto all = [&](int64_t step) {
    for (size_t i = 1; i < numbers.size(); ++i) {
      if (int64_t{numbers[i]} - numbers[i - 1] != step) return false;
    }
    return true;
  };
  if (all(0)) return Numbers::kEqual;
  return all(1) ? Numbers::kAscending : Numbers::kAny;
}

}  // namespace

void KeySource::AddText(absl::string_view text) {
  Add(static_cast<int64_t>(text.size()));
  bytes_.append(text.data(), text.size());
}

void KeySource::AddNumbers(absl::Span<const int32_t> numbers) {
  Add(static_cast<int64_t>(numbers.size()));
  if (numbers.empty()) return;
  const Numbers form = FormOf(numbers);
  Add(static_cast<int64_t>(form));
  if (form != Numbers::kAny) return Add(numbers.front());
  bytes_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int32_t));
}

char* KeySource::AddBytes(int64_t size) {
  Add(size);
  const size_t before = bytes_.size();
  bytes_.resize(before + static_cast<size_t>(size));
  return bytes_.data() + before;
}

// SipHash with 128 bits: made for keyed tables, and an order of magnitude faster than hashes that
// are safe without a secret.
KeyMaker::KeyMaker() : mac_(nullptr, EVP_MAC_CTX_free) {
  const std::unique_ptr<EVP_MAC, void (*)(EVP_MAC*)> algorithm(
      EVP_MAC_fetch(nullptr, "SIPHASH", nullptr), EVP_MAC_free);
  if (algorithm != nullptr) mac_.reset(EVP_MAC_CTX_new(algorithm.get()));
  unsigned char secret[16];
  size_t bytes = sizeof(CacheKey);
  const OSSL_PARAM options[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &bytes),
                                OSSL_PARAM_construct_end()};
  // All kernels and all versions of OpenSSL that the server runs on have these.
  if (getentropy(secret, sizeof secret) != 0 || mac_ == nullptr ||
      EVP_MAC_init(mac_.get(), secret, sizeof secret, options) != 1) {
    std::abort();
  }
}

CacheKey KeyMaker::Make(absl::string_view source) const {
  CacheKey key;
  size_t size = 0;
  const std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)> mac(EVP_MAC_CTX_dup(mac_.get()),
                                                                 EVP_MAC_CTX_free);
  const auto* bytes = reinterpret_cast<const unsigned char*>(source.data());
  if (mac == nullptr || EVP_MAC_update(mac.get(), bytes, source.size()) != 1 ||
      EVP_MAC_final(mac.get(), key.data(), &size, key.size()) != 1) {
    throw std::bad_alloc();  // the only reason that there is
  }
  return key;
}

}  // namespace attendant::server
