#include "client/commands/commands.h"
#include "client/flags/completion.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {
namespace {

class CompletionCommand : public Command {
 public:
  explicit CompletionCommand(const ProgramTable& program) : program_(program) {}

  CommandTable Table() override {
    CommandTable table = {
        "Shell", "completion", "Print a shell script that completes commands and flags",
        "Packages install it into /usr/share/bash-completion/completions. Does not call a server.",
        "source <(attendant-client completion bash)"};
    table.Add("Arguments", {{.name = "SHELL",
                             .placeholder = "",
                             .help = "The shell",
                             .kind = ChoiceKind<std::string>(shell_, {{"bash", "bash"}}),
                             .required = true}});
    return table;
  }

  ExitCode Run(Session& session) override {
    session.out << BashCompletion(program_);
    return kSucceeded;
  }

 private:
  const ProgramTable& program_;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletionCommand(const ProgramTable& program) {
  return std::make_unique<CompletionCommand>(program);
}

}  // namespace attendant::client
