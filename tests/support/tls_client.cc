#include "tests/support/tls_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tests/support/http_answer.h"

namespace attendant::test_support {
namespace {

void RequireAccepted(bool worked) {
  if (!worked) throw std::runtime_error("OpenSSL does not take what a test gives it");
}

std::unique_ptr<BIO, decltype(&BIO_free)> Open(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free};
}

std::unique_ptr<X509, decltype(&X509_free)> ReadCertificate(const std::string& text) {
  return {PEM_read_bio_X509(Open(text).get(), nullptr, nullptr, nullptr), X509_free};
}

void Trust(SSL_CTX* context, const std::string& ca) {
  if (ca.empty()) return;
  RequireAccepted(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ReadCertificate(ca).get()) ==
                  1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
}

void Show(SSL_CTX* context, const IssuedCertificate& own) {
  if (own.certificate.empty()) return;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(Open(own.key).get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  RequireAccepted(SSL_CTX_use_certificate(context, ReadCertificate(own.certificate).get()) == 1);
  RequireAccepted(SSL_CTX_use_PrivateKey(context, key.get()) == 1);
}

int ConnectTo(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience = {60, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

}  // namespace

struct TlsClient::Session {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_client_method()),
                                                            SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> tls{nullptr, SSL_free};
  int descriptor = -1;

  ~Session() {
    if (descriptor >= 0) close(descriptor);
  }
};

TlsClient::TlsClient(int port, const TlsClientOptions& options)
    : session_(std::make_unique<Session>()) {
  std::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* context = session_->context.get();
  if (options.version != 0) {
    SSL_CTX_set_security_level(context, 0);  // so that old versions are tried at all
    SSL_CTX_set_min_proto_version(context, options.version);
    SSL_CTX_set_max_proto_version(context, options.version);
  }
  const unsigned char protocols[] = "\x02h2\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols - 1);
  Trust(context, options.ca);
  Show(context, options.own);
  session_->tls.reset(SSL_new(context));
  session_->descriptor = ConnectTo(port);
  if (session_->descriptor < 0) return;
  SSL_set_fd(session_->tls.get(), session_->descriptor);
  connected_ = SSL_connect(session_->tls.get()) == 1;
}

TlsClient::~TlsClient() = default;

bool TlsClient::Send(const std::string& bytes) {
  SSL* tls = session_->tls.get();
  return connected_ && SSL_write(tls, bytes.data(), static_cast<int>(bytes.size())) > 0;
}

bool TlsClient::ReceiveMore() {
  char buffer[4096];
  const int got = SSL_read(session_->tls.get(), buffer, sizeof buffer);
  if (got > 0) received_.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

std::string TlsClient::ReceiveAll() {
  while (ReceiveMore()) continue;
  return std::exchange(received_, "");
}

std::string TlsClient::ReceiveAnswer() {
  std::optional<size_t> size;
  while (!(size = SizeOfAnswer(received_)) && ReceiveMore()) continue;
  const std::string answer = received_.substr(0, size.value_or(received_.size()));
  received_.erase(0, answer.size());
  return answer;
}

std::string HttpsGet(int port, const std::string& path, const TlsClientOptions& options) {
  return TlsClient(port, options).Ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

}  // namespace attendant::test_support
