#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "client/cli/memory_options.h"
#include "client/cli/shared_flags.h"
#include "client/cli/to_json.h"
#include "client/commands/commands.h"

namespace attendant::client {
namespace {

class PutMemoryCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  PutMemoryRequest request_;
  MemoryOptions memory_;
};

CommandTable PutMemoryCommand::Table() {
  CommandTable table = {
      "Compute", "put-memory", "Register a memory for attend and print its handle",
      "The server keeps the keys and values of the memory until it expires or is dropped; attend "
      "--memory-handle uses them.",
      "attendant-client put-memory --model worked-example \\\n"
      "  --memory \"1,1,1,1;0,1,0,1\" --time-to-live 5m"};
  table.Add("Model", {ModelFlag(request_.model), LayerFlag(request_.layer)});
  table.Add("Memory", memory_.MemoryFlags(/*required=*/true));
  table.Add("Memory", {SequenceFirstFlag(request_.layout),
                       {"--time-to-live", "DURATION",
                        "Time until the memory expires; 0: the server's maximum",
                        DurationKind(request_.time_to_live)}});
  table.Add("Output", {RequestIdFlag(request_.request_id)});
  return table;
}

ExitCode PutMemoryCommand::Run(Session& session) {
  absl::StatusOr<std::optional<Memory>> memory = memory_.Read(request_.layout);
  if (!memory.ok()) return ReportBadUsage(session, memory.status());
  PutMemoryRequest request = request_;
  request.memory = *std::move(*memory);
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

class DropMemoryCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  std::string handle_;
};

CommandTable DropMemoryCommand::Table() {
  CommandTable table = {"Compute", "drop-memory", "Drop a registered memory", "",
                        "handle=$(attendant-client put-memory --model worked-example \\\n"
                        "  --memory \"1,1,1,1;0,1,0,1\")\n"
                        "attendant-client drop-memory \"$handle\""};
  table.Add("Arguments", {{.name = "HANDLE",
                           .placeholder = "",
                           .help = "The handle printed by put-memory",
                           .kind = TextKind(handle_),
                           .required = true}});
  return table;
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

}  // namespace

std::unique_ptr<Command> MakePutMemoryCommand() { return std::make_unique<PutMemoryCommand>(); }

std::unique_ptr<Command> MakeDropMemoryCommand() { return std::make_unique<DropMemoryCommand>(); }

}  // namespace attendant::client
