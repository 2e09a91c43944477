#include "client/commands/memory_commands.h"

#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "client/cli/input_options.h"
#include "client/cli/to_json.h"

namespace attendant::client {

CLI::App* PutMemoryCommand::AddTo(CLI::App& app) {
  CLI::App* put = app.add_subcommand(
      "put-memory", "Registers what attend --memory-handle attends to; prints its handle");
  put->add_option("--model", model_, "Name of the model; default: the server's only one");
  put->add_option("--layer", layer_, "Index of the layer")->capture_default_str();
  memory_.AddTo(*put);
  put->get_option("--memory")->required();
  AddSequenceFirst(*put, layout_);
  AddDuration(*put, "--time-to-live", time_to_live_,
              "Time until it expires; 0: as long as the server allows");
  put->add_option("--request-id", request_id_, "For the server's log");
  return put;
}

ExitCode PutMemoryCommand::Run(Session& session) {
  absl::StatusOr<std::optional<Memory>> memory = memory_.Read(layout_);
  if (!memory.ok()) return ReportBadUsage(session, memory.status());
  PutMemoryRequest request = {.model = model_,
                              .layer = layer_,
                              .layout = layout_,
                              .memory = *std::move(*memory),
                              .time_to_live = time_to_live_,
                              .request_id = request_id_};
  const absl::StatusOr<RegisteredMemory> kept =
      session.Connect().PutMemory(std::move(request), session.call);
  if (!kept.ok()) return ReportServerError(session, kept.status());
  const std::string expires =
      absl::FormatTime(absl::RFC3339_sec, kept->expires, absl::UTCTimeZone());
  if (session.json) {
    PrintJson(session, {{"handle", kept->handle},
                        {"bytes", kept->bytes},
                        {"expires", expires},
                        {"execution", ToJson(kept->execution)}});
  } else {
    session.out << kept->handle << "\n";
    session.err << kept->bytes << " bytes, until " << expires << "\n";
  }
  return kSucceeded;
}

CLI::App* DropMemoryCommand::AddTo(CLI::App& app) {
  CLI::App* drop = app.add_subcommand("drop-memory", "Forgets a registered memory");
  drop->add_option("handle", handle_, "As put-memory printed it")->required();
  return drop;
}

ExitCode DropMemoryCommand::Run(Session& session) {
  const absl::StatusOr<int64_t> bytes = session.Connect().DropMemory(handle_, session.call);
  if (!bytes.ok()) return ReportServerError(session, bytes.status());
  if (session.json) {
    PrintJson(session, {{"bytes", *bytes}});
  } else {
    session.out << "dropped " << *bytes << " bytes\n";
  }
  return kSucceeded;
}

}  // namespace attendant::client
