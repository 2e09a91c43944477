#include "server/http/http_daemon.h"

#include <gnutls/abstract.h>
#include <spdlog/spdlog.h>
#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "server/http/cors.h"
#include "server/http/http_content.h"

namespace attendant::server {
namespace {

constexpr size_t kHeadBytes = 8192;
constexpr size_t kPieceBytes = 16384;  // of a body that is read while it is sent
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

// Returns the path of a request target without repeated slashes and a slash at its end, which
// result from base URLs that end with one, and without the scheme and host of a target in absolute
// form.
std::string PathOf(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.substr(0, scheme.size()) != scheme) continue;
    target.remove_prefix(std::min(target.find('/', scheme.size()), target.size()));
  }
  std::string path;
  for (const char c : target) {
    if (c != '/' || path.empty() || path.back() != '/') path += c;
  }
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.empty() ? "/" : path;
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

// Returns whether a proxy may see another end of the body, and so another next request, than the
// library (RFC 9112, section 6.3). The library takes the first length and ignores encodings that it
// does not know.
bool HasUnclearLength(MHD_Connection* library) {
  const std::string lengths = AllOf(library, MHD_HTTP_HEADER_CONTENT_LENGTH);
  if (HeaderOf(library, MHD_HTTP_HEADER_TRANSFER_ENCODING).data() == nullptr) {
    return lengths.find(',') != lengths.npos;
  }
  const std::string encodings = AllOf(library, MHD_HTTP_HEADER_TRANSFER_ENCODING);
  return !lengths.empty() || strcasecmp(encodings.c_str(), "chunked") != 0;
}

int DescriptorOf(MHD_Connection* library) {
  return MHD_get_connection_info(library, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

HttpConnection& ConnectionOf(MHD_Connection* library) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(library, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return *static_cast<HttpConnection*>(info->socket_context);
}

gnutls_session_t SessionOf(MHD_Connection* library) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(library, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  return static_cast<gnutls_session_t>(info->tls_session);
}

// `works` is set each time that some of the answer is read.
MHD_Response* ResponseOf(HttpAnswer& answer, bool& works) {
  if (answer.content == nullptr && answer.body.size() <= kPieceBytes) {
    return MHD_create_response_from_buffer(answer.body.size(), answer.body.data(),
                                           MHD_RESPMEM_MUST_COPY);
  }
  if (answer.content == nullptr) {
    answer.content = std::make_shared<HttpContent>(std::move(answer.body));
  }
  struct Reading {
    std::shared_ptr<HttpContent> content;
    bool& works;
  };
  auto reading = std::make_unique<Reading>(Reading{answer.content, works});
  const MHD_ContentReaderCallback read = [](void* from, uint64_t, char* to, size_t most) {
    auto& source = *static_cast<Reading*>(from);
    source.works = true;
    try {
      return static_cast<ssize_t>(source.content->Read(to, most));
    } catch (const std::exception&) {
      return static_cast<ssize_t>(MHD_CONTENT_READER_END_WITH_ERROR);
    }
  };
  MHD_Response* response = MHD_create_response_from_callback(
      static_cast<uint64_t>(answer.content->size()), kPieceBytes, read, reading.get(),
      [](void* from) { delete static_cast<Reading*>(from); });
  if (response != nullptr) static_cast<void>(reading.release());  // it deletes it
  return response;
}

using Phase = HttpConnection::Phase;

}  // namespace

absl::StatusOr<std::unique_ptr<HttpDaemon>> HttpDaemon::Start(HttpDaemonParts parts,
                                                              int connections) {
  const bool encrypts = parts.certificates != nullptr;
  std::unique_ptr<HttpDaemon> daemon(new HttpDaemon(std::move(parts)));
  if (encrypts && daemon->NewestCredentials() == nullptr) {
    return absl::InvalidArgumentError(
        "--tls-cert, --tls-key, --tls-client-ca: not accepted by GnuTLS, which the HTTP port uses");
  }
  daemon->daemon_.reset(daemon->StartLibrary(connections));
  if (daemon->daemon_ == nullptr) return absl::UnavailableError(std::strerror(errno));
  return daemon;
}

MHD_Daemon* HttpDaemon::StartLibrary(int connections) {
  // Called once the head of a request is complete, where an answer means that the library does not
  // read a body, and closes the connection; then with the body's parts; then without any; and again
  // when it is resumed.
  const MHD_AccessHandlerCallback answer = [](void* self, MHD_Connection* library, const char* path,
                                              const char* method, const char*, auto... rest) {
    const auto [body, size, context] = std::tuple(rest...);
    HttpConnection& connection = ConnectionOf(library);
    try {
      auto& daemon = *static_cast<HttpDaemon*>(self);
      daemon.works_ = true;
      if (*context != nullptr) return daemon.Continue(connection, body, size);
      *context = &connection;
      return daemon.Begin(connection, path, method);
    } catch (const std::exception&) {
      return MHD_NO;  // closes the connection; the library, in C, passes no exception on
    }
  };
  std::vector<MHD_OptionItem> options = {
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, static_cast<intptr_t>(kHeadBytes), nullptr},
      // Out of reach: HttpConnections keeps the limit, except for one that is just being closed.
      {MHD_OPTION_CONNECTION_LIMIT, 2 * connections, nullptr},
      // Answers a request without the header Host, which probes written by hand often lack.
      {MHD_OPTION_STRICT_FOR_CLIENT, -1, nullptr},
      {MHD_OPTION_NOTIFY_COMPLETED, reinterpret_cast<intptr_t>(&OnCompleted), this},
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&OnConnection), this}};
  unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
  if (parts_.certificates != nullptr) {
    flags |= MHD_USE_TLS;
    options.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kProtocols)});
    // The library's own credentials, which fail: Open replaces them in each session.
    gnutls_certificate_retrieve_function2* const none = [](auto...) { return -1; };
    options.push_back({MHD_OPTION_HTTPS_CERT_CALLBACK, 0, reinterpret_cast<void*>(none)});
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  return MHD_start_daemon(flags, 0, nullptr, nullptr, answer, this, MHD_OPTION_ARRAY,
                          options.data(), MHD_OPTION_END);
}

void HttpDaemon::Take(const HttpConnection& connection, const sockaddr* peer, socklen_t peer_size) {
  MHD_add_connection(daemon_.get(), connection.descriptor, peer, peer_size);
}

int HttpDaemon::events() const {
  return MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

bool HttpDaemon::has_work() const {
  // The library has no time-outs here, so this only says whether it has work left.
  MHD_UNSIGNED_LONG_LONG unused;
  return MHD_get_timeout(daemon_.get(), &unused) == MHD_YES;
}

void HttpDaemon::Run() {
  MHD_run(daemon_.get());
  parts_.open.RemoveUnserved();
}

const std::shared_ptr<const HttpCredentials>& HttpDaemon::NewestCredentials() {
  if (parts_.certificates == nullptr) return credentials_;
  std::shared_ptr<const Certificates> newest = parts_.certificates->current();
  if (newest == seen_certificates_) return credentials_;
  std::shared_ptr<const HttpCredentials> loaded = HttpCredentials::Load(newest);
  seen_certificates_ = std::move(newest);
  if (loaded != nullptr) {
    credentials_ = std::move(loaded);
  } else if (credentials_ != nullptr) {
    spdlog::warn("HTTP port: the new certificates cannot be used");
  }
  return credentials_;
}

MHD_Result HttpDaemon::Begin(HttpConnection& connection, const char* target, const char* method) {
  MHD_Connection* library = connection.library;
  // It is still idle if its first byte arrived with the previous request.
  if (connection.phase == Phase::kIdle) connection.Enter(Phase::kBrief);
  const std::string path = PathOf(target);
  HttpRequest request = {method, path, HasBody(library)};
  request.authorization = std::string(HeaderOf(library, MHD_HTTP_HEADER_AUTHORIZATION));
  if (const auto& newest = NewestCredentials(); newest != nullptr) {
    request.has_certificate = newest->Trust(SessionOf(library), *connection.credentials);
  }
  request.peer = connection.peer;
  request.call_room = parts_.open.CheckRoomForCall(connection.address);
  request.header = [library](const char* name) { return AllOf(library, name); };
  HttpExchange& exchange = connection.exchange.emplace();
  exchange.reply = std::make_shared<HttpReply>(parts_.waker);
  exchange.headers = CorsHeaders(parts_.cors_origins, request);
  if (HasUnclearLength(library)) {
    exchange.answer = {400, "expected one Content-Length, or Transfer-Encoding: chunked\n"};
    exchange.answer.headers = {{MHD_HTTP_HEADER_CONNECTION, "close"}};
    return Send(connection);
  }
  std::optional<HttpAnswer> preflight = PreflightAnswer(parts_.cors_origins, request);
  HttpStart start = preflight ? *std::move(preflight) : parts_.begin(request, exchange.reply);
  if (auto* call = std::get_if<std::shared_ptr<HttpCall>>(&start)) {
    exchange.call = std::move(*call);
    connection.Enter(Phase::kReceiving);
  } else if (auto* handler = std::get_if<HttpBodyHandler>(&start)) {
    exchange.handler = std::move(*handler);
  } else {
    exchange.answer = std::get<HttpAnswer>(std::move(start));
    if (request.has_body) return Send(connection);
  }
  return MHD_YES;
}

MHD_Result HttpDaemon::Continue(HttpConnection& connection, const char* body, size_t* size) {
  HttpExchange& exchange = *connection.exchange;
  if (connection.closing) return MHD_NO;
  if (const std::string_view bytes(body, std::exchange(*size, 0)); !bytes.empty()) {
    connection.received += static_cast<int64_t>(bytes.size());
    if (exchange.call != nullptr) {
      exchange.call->OnBody(bytes);
    } else {
      exchange.body.append(bytes.substr(0, kMostHandledBytes - exchange.body.size()));
    }
    return MHD_YES;
  }
  if (connection.phase == Phase::kBrief) {
    if (exchange.handler != nullptr) exchange.answer = exchange.handler(exchange.body);
    return Send(connection);
  }
  if (connection.phase == Phase::kWaiting) {
    connection.Enter(Phase::kSending);
    exchange.answer = exchange.reply->Take();
    return Send(connection);
  }
  connection.Enter(Phase::kWaiting);
  MHD_suspend_connection(connection.library);
  try {
    std::optional<HttpAnswer> answer = exchange.call->OnRequest();
    if (answer) exchange.reply->Send(*std::move(answer));
  } catch (const std::exception&) {
    connection.closing = true;  // which the next run does
    Resume(connection);
    parts_.waker->Wake();
  }
  return MHD_YES;
}

MHD_Result HttpDaemon::Send(HttpConnection& connection) {
  HttpAnswer& answer = connection.exchange->answer;
  const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> response(
      ResponseOf(answer, works_), MHD_destroy_response);
  if (response == nullptr) return MHD_NO;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) MHD_add_response_header(response.get(), name, value.c_str());
  };
  add(MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type);
  // The client of a connection with old certificates is to see the new ones.
  const bool last = ends_connections_ || connection.credentials != credentials_;
  if (last) add(MHD_HTTP_HEADER_CONNECTION, "close");
  add(MHD_HTTP_HEADER_ALLOW, answer.allow);
  add(MHD_HTTP_HEADER_WWW_AUTHENTICATE, answer.authenticate);
  for (const auto* headers : {&answer.headers, &connection.exchange->headers}) {
    for (const auto& [name, value] : *headers) add(name.c_str(), value);
  }
  return MHD_queue_response(connection.library, answer.status, response.get());
}

void HttpDaemon::OnCompleted(void* /*self*/, MHD_Connection* library, void** context,
                             MHD_RequestTerminationCode end) {
  HttpConnection& connection = ConnectionOf(library);
  const std::optional<HttpExchange> exchange = std::exchange(connection.exchange, std::nullopt);
  *context = nullptr;
  connection.received = 0;
  connection.cancelled = false;
  connection.Enter(Phase::kIdle);
  if (!exchange || exchange->call == nullptr) return;
  try {
    exchange->call->OnEnd(end == MHD_REQUEST_TERMINATED_COMPLETED_OK ? HttpCall::End::kSent
                          : connection.closing                       ? HttpCall::End::kTooLate
                                                                     : HttpCall::End::kLost);
  } catch (const std::exception&) {
    // What it holds goes with it.
  }
}

void HttpDaemon::Open(HttpConnection& connection) {
  try {
    connection.credentials = NewestCredentials();
  } catch (const std::bad_alloc&) {
    connection.credentials = credentials_;
  }
  if (connection.credentials != nullptr) {
    connection.credentials->GiveTo(SessionOf(connection.library));
  }
}

void HttpDaemon::OnConnection(void* self, MHD_Connection* library, void** context,
                              MHD_ConnectionNotificationCode event) {
  auto& daemon = *static_cast<HttpDaemon*>(self);
  const int descriptor = DescriptorOf(library);
  if (event == MHD_CONNECTION_NOTIFY_CLOSED) return daemon.parts_.open.Remove(descriptor);
  HttpConnection* connection = daemon.parts_.open.Find(descriptor);
  *context = connection;
  connection->library = library;
  daemon.Open(*connection);
}

}  // namespace attendant::server
