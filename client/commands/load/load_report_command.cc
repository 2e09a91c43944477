#include "client/commands/load/load_report_command.h"

#include <utility>

#include "client/files/file_bytes.h"
#include "client/load_report/saved_report.h"

namespace attendant::client {

CLI::App* LoadReportCommand::AddTo(CLI::App& app) {
  CLI::App* load_report = app.add_subcommand("load-report",
                                             "Shows a report that load-test --json has printed, or "
                                             "compares two, as a table and as a page");
  load_report->add_option("files", files_, "One report, or two to compare")
      ->type_name("FILE")
      ->required()
      ->expected(1, 2);
  load_report->add_option("--html", html_, "Write one self-contained page there")
      ->type_name("FILE");
  return load_report;
}

ExitCode LoadReportCommand::Run(Session& session) {
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
    Json documents = Json::array();
    for (const NamedReport& report : reports) documents.push_back(report.document);
    PrintJson(session, documents);
  } else if (reports.size() == 1) {
    session.out << SavedTable(reports[0].document);
  } else {
    session.out << ComparisonTable(reports[0].document, reports[1].document);
  }
  return kSucceeded;
}

}  // namespace attendant::client
