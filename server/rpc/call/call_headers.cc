#include "server/rpc/call/call_headers.h"

#include <iterator>

#include "absl/strings/string_view.h"
#include "server/account/peer.h"
#include "server/account/trace_context.h"

namespace attendant::server {

std::string PeerOf(const grpc::ServerContextBase& call, const std::vector<Network>& trusted) {
  std::string forwarded_for;
  if (!trusted.empty()) {
    const auto [begin, end] = call.client_metadata().equal_range("x-forwarded-for");
    for (auto field = begin; field != end; ++field) {
      if (!forwarded_for.empty()) forwarded_for += ",";
      forwarded_for.append(field->second.data(), field->second.size());
    }
  }
  return PeerOf(call.peer(), forwarded_for, trusted);
}

absl::StatusOr<std::string> IdentifyPeer(const grpc::ServerContextBase& call,
                                         const std::vector<Network>& trusted,
                                         const ServerSecrets& secrets) {
  const auto [header, end] = call.client_metadata().equal_range("authorization");
  const bool has_one = header != end && std::next(header) == end;
  const absl::string_view authorization =
      has_one ? absl::string_view(header->second.data(), header->second.size()) : "";
  absl::StatusOr<std::string> token = secrets.Identify(authorization, TokenScope::kInfer);
  if (!token.ok() || !token->empty()) return token;
  return PeerOf(call, trusted);
}

std::string TraceParentOf(const grpc::ServerContextBase& call) {
  const auto [begin, end] = call.client_metadata().equal_range(kTraceParent);
  if (begin == end || std::next(begin) != end) return "";
  return ParseTraceParent({begin->second.data(), begin->second.size()});
}

}  // namespace attendant::server
