#include "server/rpc/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/fault.h"

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
        needs_certificate_(certificates_ != nullptr &&
                           !certificates_->current()->client_ca.empty()),
        credentials_(certificates_ == nullptr ? grpc_insecure_server_credentials_create()
                                              : MakeTls()) {
    if (!needs_certificate_ && secrets_.tokens == nullptr) return;
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {CheckCaller, nullptr, this});
  }
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* MakeTls() {
    // A certificate that is shown has to be good, or the handshake fails. Calls that need one and
    // have none are refused later, since health checks need none.
    const auto request_type = needs_certificate_ ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
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

  // Gives `done` the result for a call with these headers. gRPC asks for every call, also for one
  // of a method that no service has.
  static void CheckCaller(void* self, grpc_auth_context* connection, const grpc_metadata* headers,
                          size_t count, grpc_process_auth_metadata_done_cb done, void* call) {
    const bool has_certificate = grpc_auth_context_peer_is_authenticated(connection) != 0;
    const absl::Status status = Guarded([&] {
      return static_cast<Credentials*>(self)->Check(has_certificate,
                                                    Find(headers, count, ":path"),
                                                    Find(headers, count, "authorization"));
    });
    std::string message;  // if there is no memory for it, the code has to do
    Guarded([&] { message = std::string(status.message()); }).IgnoreError();
    // The token stays in the headers, as gRPC lets this pass nothing on: what it knows of a caller
    // belongs to the connection, which calls with different tokens may share.
    done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
         message.c_str());
  }

  absl::Status Check(bool has_certificate, const grpc_metadata* path,
                     const grpc_metadata* authorization) const {
    if (path != nullptr && absl::StartsWith(View(path->value), kHealthPrefix)) {
      return absl::OkStatus();
    }
    if (needs_certificate_ && !has_certificate) {
      return absl::UnauthenticatedError("the call needs a valid certificate");
    }
    return secrets_.CheckToken(authorization == nullptr ? "" : View(authorization->value),
                               TokenScope::kInfer);
  }

  const Reloaded<Certificates>* const certificates_;
  const ServerSecrets secrets_;
  const bool needs_certificate_;
  absl::Mutex mutex_;
  std::shared_ptr<const Certificates> in_use_ ABSL_GUARDED_BY(mutex_);
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets) {
  return std::make_shared<Credentials>(secrets);
}

}  // namespace attendant::server
