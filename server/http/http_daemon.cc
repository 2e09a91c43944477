#include "server/http/http_daemon.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

constexpr size_t kHeadBytes = 8192;
constexpr size_t kPieceBytes = 16384;  // of a body that is made while it is sent
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

// The values of a header, in their order.
std::string AllOf(MHD_Connection* connection, const char* name) {
  struct Search {
    const char* name;
    std::string values;
    bool starved = false;
  } found = {name, {}};
  const MHD_KeyValueIterator add = [](void* to, MHD_ValueKind, const char* key, const char* value) {
    auto& search = *static_cast<Search*>(to);
    if (value == nullptr || strcasecmp(key, search.name) != 0) return MHD_YES;
    try {
      if (!search.values.empty()) search.values += ",";
      search.values += value;
      return MHD_YES;
    } catch (const std::bad_alloc&) {  // the library, in C, passes no exception on
      search.starved = true;
      return MHD_NO;
    }
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, add, &found);
  if (found.starved) throw std::bad_alloc();
  return found.values;
}

// "ipv4:10.0.0.1:5000", "ipv6:[::1]:5000".
std::string NameOfPeer(MHD_Connection* connection) {
  const sockaddr* address =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  const bool is_v4 = address->sa_family == AF_INET;
  const socklen_t size = is_v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (getnameinfo(address, size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return is_v4 ? absl::StrCat("ipv4:", host, ":", port) : absl::StrCat("ipv6:[", host, "]:", port);
}

MHD_Response* ResponseOf(const HttpAnswer& answer) {
  if (answer.content == nullptr) {
    return MHD_create_response_from_buffer(
        answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  }
  auto content = std::make_unique<std::shared_ptr<HttpContent>>(answer.content);
  const MHD_ContentReaderCallback read = [](void* from, uint64_t, char* to, size_t most) {
    try {
      return static_cast<ssize_t>(
          (*static_cast<std::shared_ptr<HttpContent>*>(from))->Read(to, most));
    } catch (const std::exception&) {
      return static_cast<ssize_t>(MHD_CONTENT_READER_END_WITH_ERROR);
    }
  };
  MHD_Response* response = MHD_create_response_from_callback(
      static_cast<uint64_t>(answer.content->size()), kPieceBytes, read, content.get(),
      [](void* from) { delete static_cast<std::shared_ptr<HttpContent>*>(from); });
  if (response != nullptr) static_cast<void>(content.release());  // it deletes it
  return response;
}

MHD_Result Send(MHD_Connection* connection, const HttpAnswer& answer) {
  const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> response(
      ResponseOf(answer), MHD_destroy_response);
  if (response == nullptr) return MHD_NO;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) MHD_add_response_header(response.get(), name, value.c_str());
  };
  add(MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type);
  add(MHD_HTTP_HEADER_CONNECTION, "close");
  add(MHD_HTTP_HEADER_ALLOW, answer.allow);
  add(MHD_HTTP_HEADER_WWW_AUTHENTICATE, answer.authenticate);
  for (const auto& [name, value] : answer.headers) add(name.c_str(), value);
  return MHD_queue_response(connection, answer.status, response.get());
}

// The last arguments of the library's calls with a request.
struct Upload {
  const char* body;
  size_t* size;  // of what is left of `body`
  void** context;
};

MHD_OptionItem Text(MHD_OPTION option, const char* value) {
  return {option, 0, const_cast<char*>(value)};
}

}  // namespace

HttpDaemon::HttpDaemon(HttpDaemonHandler& handler, std::shared_ptr<HttpReplyQueue> replies,
                       std::shared_ptr<const Certificates> certificates)
    : handler_(handler),
      replies_(std::move(replies)),
      certificates_(std::move(certificates)),
      daemon_(nullptr, MHD_stop_daemon) {}

std::unique_ptr<HttpDaemon> HttpDaemon::Start(HttpDaemonHandler& handler,
                                              std::shared_ptr<HttpReplyQueue> replies,
                                              int connections,
                                              std::shared_ptr<const Certificates> certificates) {
  std::unique_ptr<HttpDaemon> daemon(
      new HttpDaemon(handler, std::move(replies), std::move(certificates)));
  daemon->daemon_.reset(daemon->StartLibrary(connections));
  return daemon->daemon_ == nullptr ? nullptr : std::move(daemon);
}

MHD_Daemon* HttpDaemon::StartLibrary(int connections) {
  // Called once the head of a request is complete, where an answer means that the library does not
  // read a body; then with the body's parts; then without any; and again when it is resumed.
  const MHD_AccessHandlerCallback answer = [](void* self, MHD_Connection* connection,
                                              const char* path, const char* method, const char*,
                                              auto... rest) {
    const Upload upload = {rest...};
    try {
      if (*upload.context == nullptr) {
        return static_cast<HttpDaemon*>(self)->Begin(connection, path, method, upload.context);
      }
      return Continue(**static_cast<std::shared_ptr<HttpExchange>*>(*upload.context), upload.body,
                      upload.size);
    } catch (const std::exception&) {
      return MHD_NO;  // closes the connection; the library, in C, passes no exception on
    }
  };
  std::vector<MHD_OptionItem> options = {
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, static_cast<intptr_t>(kHeadBytes), nullptr},
      // Out of reach: HttpConnections keeps the limit, but for one that is just being closed.
      {MHD_OPTION_CONNECTION_LIMIT, 2 * connections, nullptr},
      // Answers a request without the header Host, which probes written by hand often lack.
      {MHD_OPTION_STRICT_FOR_CLIENT, -1, nullptr},
      {MHD_OPTION_NOTIFY_COMPLETED, reinterpret_cast<intptr_t>(&OnCompleted), this},
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&OnConnection), this}};
  unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
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

void HttpDaemon::Resume(HttpExchange& exchange) { MHD_resume_connection(exchange.connection); }

MHD_Result HttpDaemon::Begin(MHD_Connection* connection, const char* path, const char* method,
                             void** context) {
  HttpRequest request = {method, path, HasBody(connection)};
  request.authorization = std::string(HeaderOf(connection, MHD_HTTP_HEADER_AUTHORIZATION));
  request.has_certificate = HasGoodCertificate(connection);
  request.peer = NameOfPeer(connection);
  request.header = [connection](const char* name) { return AllOf(connection, name); };
  auto exchange = std::make_shared<HttpExchange>(replies_, request.peer);
  // Allocated first: once a call is set, only OnCompleted breaks the cycle between it and the
  // exchange.
  auto held = std::make_unique<std::shared_ptr<HttpExchange>>(exchange);
  HttpStart start = handler_.Begin(request, exchange);
  if (const auto* answer = std::get_if<HttpAnswer>(&start)) return Send(connection, *answer);
  exchange->call = std::get<std::shared_ptr<HttpCall>>(std::move(start));
  *context = held.release();
  exchange->connection = connection;
  exchange->descriptor =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  exchange->since = std::chrono::steady_clock::now();
  if (!exchange->call->brief()) handler_.OnCall(exchange);
  return MHD_YES;
}

MHD_Result HttpDaemon::Continue(HttpExchange& exchange, const char* body, size_t* size) {
  using Phase = HttpExchange::Phase;
  if (exchange.abandoned) return MHD_NO;
  if (*size > 0) {
    exchange.received += static_cast<int64_t>(*size);
    exchange.call->OnBody({body, *size});
    *size = 0;
    return MHD_YES;
  }
  if (exchange.phase == Phase::kReceiving) {
    exchange.phase = Phase::kWaiting;
    if (exchange.call->brief()) return Send(exchange.connection, *exchange.call->OnRequest());
    MHD_suspend_connection(exchange.connection);
    try {
      std::optional<HttpAnswer> answer = exchange.call->OnRequest();
      if (answer) exchange.Send(*std::move(answer));
    } catch (const std::exception&) {
      exchange.abandoned = true;
      exchange.Send({});  // so that it is resumed, and then closed
    }
    return MHD_YES;
  }
  exchange.phase = Phase::kSending;
  exchange.since = std::chrono::steady_clock::now();
  return Send(exchange.connection, exchange.TakeAnswer());
}

void HttpDaemon::OnCompleted(void* /*self*/, MHD_Connection* /*connection*/, void** context,
                             MHD_RequestTerminationCode end) {
  const std::unique_ptr<std::shared_ptr<HttpExchange>> held(
      static_cast<std::shared_ptr<HttpExchange>*>(*context));
  *context = nullptr;
  if (held == nullptr) return;
  HttpExchange& exchange = **held;
  exchange.connection = nullptr;
  try {
    exchange.call->OnEnd(end == MHD_REQUEST_TERMINATED_COMPLETED_OK ? HttpCall::End::kSent
                         : exchange.abandoned                       ? HttpCall::End::kTooLate
                                                                    : HttpCall::End::kLost);
  } catch (const std::exception&) {
    // What it holds goes with it.
  }
  exchange.call.reset();
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
