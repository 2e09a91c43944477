#include "server/http/http_daemon.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/socket.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attendant::server {
namespace {

constexpr size_t kHeadBytes = 8192;
constexpr char kProtocols[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

std::string_view HeaderOf(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : value;
}

bool HasBody(MHD_Connection* connection) {
  const std::string_view length = HeaderOf(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return HeaderOf(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING).data() != nullptr ||
         (length.data() != nullptr && length != "0");
}

MHD_Result Send(MHD_Connection* connection, HttpAnswer answer) {
  const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> response(
      MHD_create_response_from_buffer(answer.body.size(), answer.body.data(),
                                      MHD_RESPMEM_MUST_COPY),
      MHD_destroy_response);
  if (response == nullptr) return MHD_NO;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) MHD_add_response_header(response.get(), name, value.c_str());
  };
  add(MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type);
  add(MHD_HTTP_HEADER_CONNECTION, "close");
  add(MHD_HTTP_HEADER_ALLOW, answer.allow);
  add(MHD_HTTP_HEADER_WWW_AUTHENTICATE, answer.authenticate);
  return MHD_queue_response(connection, answer.status, response.get());
}

MHD_OptionItem Text(MHD_OPTION option, const char* value) {
  return {option, 0, const_cast<char*>(value)};
}

}  // namespace

HttpDaemon::HttpDaemon(HttpDaemonHandler& handler, std::shared_ptr<const Certificates> certificates)
    : handler_(handler),
      certificates_(std::move(certificates)),
      daemon_(nullptr, MHD_stop_daemon) {}

std::unique_ptr<HttpDaemon> HttpDaemon::Start(HttpDaemonHandler& handler, int connections,
                                              std::shared_ptr<const Certificates> certificates) {
  std::unique_ptr<HttpDaemon> daemon(new HttpDaemon(handler, std::move(certificates)));
  daemon->daemon_.reset(daemon->StartLibrary(connections));
  return daemon->daemon_ == nullptr ? nullptr : std::move(daemon);
}

MHD_Daemon* HttpDaemon::StartLibrary(int connections) {
  // Called once the head of a request is complete. An answer at that time means that the library
  // does not read a body.
  const MHD_AccessHandlerCallback answer = [](void* self, MHD_Connection* connection,
                                              const char* path, const char* method, auto...) {
    return static_cast<HttpDaemon*>(self)->Answer(connection, path, method);
  };
  std::vector<MHD_OptionItem> options = {
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, static_cast<intptr_t>(kHeadBytes), nullptr},
      // Out of reach: HttpConnections keeps the limit, but for one that is just being closed.
      {MHD_OPTION_CONNECTION_LIMIT, 2 * connections, nullptr},
      // Answers a request without the header Host, which probes written by hand often lack.
      {MHD_OPTION_STRICT_FOR_CLIENT, -1, nullptr},
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&OnConnection), this}};
  unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET;
  if (certificates_ != nullptr) {
    flags |= MHD_USE_TLS;
    options.push_back(Text(MHD_OPTION_HTTPS_MEM_CERT, certificates_->chain.c_str()));
    options.push_back(Text(MHD_OPTION_HTTPS_MEM_KEY, certificates_->key.c_str()));
    options.push_back(Text(MHD_OPTION_HTTPS_PRIORITIES, kProtocols));
    if (!certificates_->client_ca.empty()) {
      options.push_back(Text(MHD_OPTION_HTTPS_MEM_TRUST, certificates_->client_ca.c_str()));
    }
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  return MHD_start_daemon(flags, 0, nullptr, nullptr, answer, this, MHD_OPTION_ARRAY,
                          options.data(), MHD_OPTION_END);
}

bool HttpDaemon::Add(const AcceptedConnection& connection) {
  const auto* peer = reinterpret_cast<const sockaddr*>(&connection.peer);
  return MHD_add_connection(daemon_.get(), connection.descriptor, peer, connection.peer_size) ==
         MHD_YES;
}

int HttpDaemon::connections() const {
  const MHD_DaemonInfo* info =
      MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  return static_cast<int>(info->num_connections);
}

int HttpDaemon::events() const {
  return MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

bool HttpDaemon::has_work() const {
  // The library has no time-outs here, so this only says whether it has work left.
  MHD_UNSIGNED_LONG_LONG unused;
  return MHD_get_timeout(daemon_.get(), &unused) == MHD_YES;
}

void HttpDaemon::Run() { MHD_run(daemon_.get()); }

MHD_Result HttpDaemon::Answer(MHD_Connection* connection, const char* path, const char* method) {
  try {
    HttpRequest request = {method, path, HasBody(connection)};
    request.authorization = std::string(HeaderOf(connection, MHD_HTTP_HEADER_AUTHORIZATION));
    request.has_certificate = HasGoodCertificate(connection);
    return Send(connection, handler_.Answer(request));
  } catch (const std::exception&) {
    return MHD_NO;  // closes the connection; the library, in C, passes no exception on
  }
}

bool HttpDaemon::HasGoodCertificate(MHD_Connection* connection) const {
  if (certificates_ == nullptr || certificates_->client_ca.empty()) return true;
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  std::string purpose = GNUTLS_KP_TLS_WWW_CLIENT;
  gnutls_typed_vdata_st wanted = {GNUTLS_DT_KEY_PURPOSE_OID,
                                  reinterpret_cast<unsigned char*>(purpose.data()), 0};
  unsigned problems = 0;
  return gnutls_certificate_verify_peers(static_cast<gnutls_session_t>(info->tls_session), &wanted,
                                         1, &problems) == GNUTLS_E_SUCCESS &&
         problems == 0;
}

void HttpDaemon::OnConnection(void* self, MHD_Connection* connection, void** /*context*/,
                              MHD_ConnectionNotificationCode event) {
  if (event != MHD_CONNECTION_NOTIFY_CLOSED) return;
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  static_cast<HttpDaemon*>(self)->handler_.OnClosed(info->connect_fd);
}

}  // namespace attendant::server
