#include "server/rpc/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {
namespace {

// gRPC's C++ interface of this version reloads certificates only from files, and takes whatever is
// in them; the C interface asks at each handshake.
class Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(const ServerSecrets& secrets)
      : certificates_(*secrets.certificates),
        credentials_(MakeTls(secrets.NeedCertificates())) {}
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* MakeTls(bool needs_certificate) {
    // A certificate that is shown has to be good, or the handshake fails. Calls that need one and
    // have none are refused later, since health checks need none.
    const auto request_type = needs_certificate ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request_type, Fetch, this));
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<Credentials*>(self)->FetchNew(*config);
  }

  grpc_ssl_certificate_config_reload_status FetchNew(grpc_ssl_server_certificate_config*& config) {
    const std::shared_ptr<const Certificates> current = certificates_.current();
    absl::MutexLock lock(&mutex_);
    if (current == in_use_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    in_use_ = current;
    const grpc_ssl_pem_key_cert_pair pair = {current->key.c_str(), current->chain.c_str()};
    // gRPC wants certificates of clients' authorities even if it does not ask clients for any.
    const std::string& roots = current->client_ca.empty() ? current->chain : current->client_ca;
    config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const Reloaded<Certificates>& certificates_;
  absl::Mutex mutex_;
  std::shared_ptr<const Certificates> in_use_ ABSL_GUARDED_BY(mutex_);
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets) {
  if (secrets.certificates == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<Credentials>(secrets);
}

}  // namespace attendant::server
