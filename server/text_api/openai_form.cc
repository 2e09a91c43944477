// OpenAI's /v1/embeddings, with members that Jina's and NVIDIA's have beyond it.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text_api/json_answer.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

class OpenAiEmbeddings final : public JsonForm {
 protected:
  void Fill(Members& members, TextTask& task) override {
    task.field = "input";
    task.inputs = members.Inputs("input");
    task.normalize = members.Flag("normalized", true);
    task.dimensions = members.Count("dimensions");
    task.truncation = members.Truncation();
    ReadPurpose(members, "input_type", task);
    ReadPurpose(members, "task", task);
    if (members.Flag("late_chunking", false)) members.Refuse("late_chunking", "false", "true");
    const char* format = members.Has("embedding_type") ? "embedding_type" : "encoding_format";
    base64_ = members.Choice(format, {"float", "base64"}) == "base64";
  }

  HttpAnswer Answer(std::shared_ptr<const DoneText> done) const override {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"object\":\"list\",\"model\":", QuoteJson(done->result.model),
        ",\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens, "},\"data\":[");
    const size_t inputs = done->inputs();
    const auto write = base64_ ? AppendBase64 : AppendNumbers;
    const auto append = [done = std::move(done), write](size_t index, std::string* to) {
      absl::StrAppend(to, "{\"object\":\"embedding\",\"index\":", index, ",\"embedding\":");
      write(done->Row(index), to);
      *to += '}';
    };
    return ListAnswer(head, inputs, append, "]}");
  }

 private:
  bool base64_ = false;
};

}  // namespace

std::unique_ptr<JsonForm> MakeOpenAiEmbeddings() { return std::make_unique<OpenAiEmbeddings>(); }

}  // namespace attendant::server
