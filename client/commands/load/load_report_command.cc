#include <utility>

#include "client/cli/shared_flags.h"
#include "client/commands/load/load_commands.h"
#include "client/files/file_bytes.h"
#include "client/load_report/saved_report.h"

namespace attendant::client {
namespace {

class LoadReportCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  std::vector<std::string> files_;
  std::string html_;
};

CommandTable LoadReportCommand::Table() {
  CommandTable table = {"Load tests", "load-report",
                        "Show a saved report of load-test, or compare two",
                        "Prints a table of a report that load-test --json printed or --json-out "
                        "wrote. Does not call a server.",
                        "attendant-client load-test --json-out before.json\n"
                        "attendant-client load-test --connections 4 --json-out after.json\n"
                        "attendant-client load-report before.json after.json --html load.html"};
  FlagKind files = TextsKind(files_);
  files.takes = FlagKind::Takes::kList;
  table.Add("Arguments", {{.name = "FILE",
                           .placeholder = "",
                           .help = "One report, or two to compare",
                           .kind = std::move(files),
                           .required = true}});
  table.Add("Output", {HtmlFlag(html_)});
  return table;
}

ExitCode LoadReportCommand::Run(Session& session) {
  if (files_.size() > 2) {
    return ReportBadUsage(session, absl::InvalidArgumentError(absl::StrCat(
                                       "FILE: expected one or two; got ", files_.size())));
  }
  std::vector<NamedReport> reports;
  for (const std::string& file : files_) {
    absl::StatusOr<NamedReport> report = ReadReport(file);
    if (!report.ok()) return ReportBadUsage(session, report.status());
    reports.push_back(*std::move(report));
  }
  if (!html_.empty()) {
    const absl::Status written = WriteFile(html_, LoadPage(reports), "");
    if (!written.ok()) return ReportBadUsage(session, written);
  }
  if (session.json) {
    std::vector<JsonValue> documents;
    for (const NamedReport& report : reports) documents.push_back(report.document);
    PrintJson(session, documents);
  } else if (reports.size() == 1) {
    session.out << SavedTable(reports[0].document);
  } else {
    session.out << ComparisonTable(reports[0].document, reports[1].document);
  }
  return kSucceeded;
}

}  // namespace

std::unique_ptr<Command> MakeLoadReportCommand() { return std::make_unique<LoadReportCommand>(); }

}  // namespace attendant::client
