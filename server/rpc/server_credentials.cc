#include "server/rpc/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {
namespace {

constexpr absl::string_view kHealthPrefix = "/grpc.health.v1.Health/";

absl::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// Returns the only header of this name; null if there is none or if there are several.
const grpc_metadata* Find(const grpc_metadata* headers, size_t count, absl::string_view name) {
  const grpc_metadata* found = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (View(headers[i].key) != name) continue;
    if (found != nullptr) return nullptr;
    found = &headers[i];
  }
  return found;
}

// gRPC's C++ interface of this version reloads certificates only from files, and takes whatever is
// in them; the C interface asks at each handshake.
class Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(const ServerSecrets& secrets)
      : certificates_(secrets.certificates),
        secrets_(secrets),
        credentials_(certificates_ == nullptr ? grpc_insecure_server_credentials_create()
                                              : MakeTls()) {
    if (secrets_.tokens == nullptr) return;
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {CheckToken, nullptr, this});
  }
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* MakeTls() {
    const auto request_type = certificates_->current()->client_ca.empty()
                                  ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                  : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request_type, Fetch, this));
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<Credentials*>(self)->FetchNew(*config);
  }

  grpc_ssl_certificate_config_reload_status FetchNew(grpc_ssl_server_certificate_config*& config) {
    const std::shared_ptr<const Certificates> current = certificates_->current();
    absl::MutexLock lock(&mutex_);
    if (current == in_use_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    in_use_ = current;
    const grpc_ssl_pem_key_cert_pair pair = {current->key.c_str(), current->chain.c_str()};
    // gRPC wants certificates of clients' authorities even if it does not ask clients for any.
    const std::string& roots = current->client_ca.empty() ? current->chain : current->client_ca;
    config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  // Gives `done` the result for a call with these headers.
  static void CheckToken(void* self, grpc_auth_context*, const grpc_metadata* headers, size_t count,
                         grpc_process_auth_metadata_done_cb done, void* call) {
    const grpc_metadata* path = Find(headers, count, ":path");
    const grpc_metadata* authorization = Find(headers, count, "authorization");
    absl::Status status;
    if (path == nullptr || !absl::StartsWith(View(path->value), kHealthPrefix)) {
      status = static_cast<Credentials*>(self)->secrets_.CheckToken(
          authorization == nullptr ? "" : View(authorization->value), TokenScope::kInfer);
    }
    // Consumed, so that nothing behind the door can show a token.
    done(call, authorization, authorization == nullptr ? 0 : 1, nullptr, 0,
         static_cast<grpc_status_code>(status.code()), std::string(status.message()).c_str());
  }

  const Reloaded<Certificates>* const certificates_;
  const ServerSecrets secrets_;
  absl::Mutex mutex_;
  std::shared_ptr<const Certificates> in_use_ ABSL_GUARDED_BY(mutex_);
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets) {
  return std::make_shared<Credentials>(secrets);
}

}  // namespace attendant::server
