// OpenAI's /v1/embeddings, with members that Jina's and NVIDIA's have beyond it.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
TextWriter ReadOpenAiEmbeddings(Members& members, TextTask& task) {
  task.field = "input";
  task.inputs = members.Inputs("input");
  task.normalize = members.Flag("normalized", true);
  task.dimensions = members.Count("dimensions");
  task.truncation = members.Truncation();
  ReadPurpose(members, "input_type", task);
  ReadPurpose(members, "task", task);
  if (members.Flag("late_chunking", false)) members.Refuse("late_chunking", "false", "true");
  const char* format = members.Has("embedding_type") ? "embedding_type" : "encoding_format";
  const bool base64 = members.Choice(format, {"float", "base64"}) == "base64";
  return [base64](const std::shared_ptr<const DoneText>& done) {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"object\":\"list\",\"model\":", text::QuoteJson(done->result.model),
        ",\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens, "},\"data\":[");
    const auto write = base64 ? AppendBase64 : AppendNumbers;
    const auto append = [done, write](size_t index, std::string* to) {
      absl::StrAppend(to, "{\"object\":\"embedding\",\"index\":", index, ",\"embedding\":");
      write(done->Row(index), to);
      *to += '}';
    };
    return ListAnswer(head, done->inputs(), append, "]}");
  };
}

}  // namespace attendant::server
