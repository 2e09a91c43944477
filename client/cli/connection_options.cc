#include "client/cli/connection_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/files/file_bytes.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {
namespace {

// Reads a file into `text`, unless no file is named.
absl::Status ReadText(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::string> bytes = file->Read(0, file->size());
  if (!bytes.ok()) return bytes.status();
  text = *std::move(bytes);
  return absl::OkStatus();
}

// Reads a PEM file with a `kind`, such as CERTIFICATE. With another file, gRPC would only fail to
// connect, or, if it is empty, trust the authorities of this machine.
absl::Status ReadPem(const std::string& path, absl::string_view kind, std::string& text) {
  if (absl::Status status = ReadText(path, text); !status.ok()) return status;
  if (path.empty() || absl::StrContains(text, absl::StrCat(kind, "-----"))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected a ", kind, " in PEM"));
}

bool IsToken(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
}

}  // namespace

Flags ConnectionOptions::ConnectionFlags() {
  return {
      {"--tls-ca", "FILE", "Connect over TLS and trust the certificate authorities in FILE",
       TextKind(tls_ca_)},
      {"--tls-cert", "FILE", "Client certificate, for TLS", TextKind(tls_certificate_),
       "--tls-key"},
      {"--tls-key", "FILE", "Private key of the client certificate", TextKind(tls_key_),
       "--tls-cert"},
      {"--token-file", "FILE", "File that contains only the bearer token to send",
       TextKind(token_file_)},
      {"--proxy", "",
       "Use the HTTP proxy from the environment (grpc_proxy, https_proxy, http_proxy, no_proxy)",
       SwitchKind(proxy_)},
  };
}

absl::StatusOr<ClientOptions> ConnectionOptions::Read() const {
  ClientOptions options;
  options.proxy = proxy_;
  TlsOptions tls;
  absl::Status status = ReadPem(tls_ca_, "CERTIFICATE", tls.ca);
  status.Update(ReadPem(tls_certificate_, "CERTIFICATE", tls.certificate));
  status.Update(ReadPem(tls_key_, "PRIVATE KEY", tls.key));
  if (!status.ok()) return status;
  if (!token_file_.empty()) {
    absl::StatusOr<std::string> token = ReadToken(token_file_);
    if (!token.ok()) return token.status();
    options.token = *std::move(token);
  }
  if (!tls_ca_.empty() || !tls_certificate_.empty()) options.tls = std::move(tls);
  return options;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::string token;
  if (absl::Status status = ReadText(path, token); !status.ok()) return status;
  absl::StripAsciiWhitespace(&token);
  if (!IsToken(token)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected one token of printable characters without spaces"));
  }
  return token;
}

}  // namespace attendant::client
