#include "engine/checkpoint/files/digests.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace attendant {
namespace {

// OpenSSL fails here only when it is out of memory or its provider forbids the algorithm.
class Digest {
 public:
  explicit Digest(const EVP_MD* algorithm) : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    ok_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1;
  }

  void Update(absl::string_view bytes) {
    ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
  }

  absl::StatusOr<std::string> Finish() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!ok_ || EVP_DigestFinal_ex(context_.get(), digest, &size) != 1) {
      return absl::InternalError("libcrypto cannot compute the digest");
    }
    return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool ok_ = false;
};

absl::StatusOr<std::string> DigestOf(const InputFile& file, Digest digest) {
  std::vector<char> chunk(static_cast<size_t>(std::min(kChunkBytes, file.size())));
  for (int64_t offset = 0; offset < file.size(); offset += kChunkBytes) {
    const auto bytes = static_cast<size_t>(std::min(kChunkBytes, file.size() - offset));
    RETURN_IF_ERROR(file.ReadAt(offset, absl::MakeSpan(chunk).first(bytes)));
    digest.Update({chunk.data(), bytes});
  }
  return digest.Finish();
}

}  // namespace

absl::StatusOr<std::string> Sha256(const InputFile& file) {
  return DigestOf(file, Digest(EVP_sha256()));
}

absl::StatusOr<std::string> Sha256(absl::string_view text) {
  Digest digest(EVP_sha256());
  digest.Update(text);
  return digest.Finish();
}

absl::StatusOr<std::string> GitBlobSha1(const InputFile& file) {
  Digest digest(EVP_sha1());
  digest.Update(absl::StrCat("blob ", file.size()));
  digest.Update({"", 1});  // the zero that ends what Git puts before a file
  return DigestOf(file, std::move(digest));
}

}  // namespace attendant
