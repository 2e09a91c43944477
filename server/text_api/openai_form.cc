// OpenAI's /v1/embeddings, with members that Jina's, NVIDIA's, Voyage's and vLLM's have beyond it.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
TextWriter ReadOpenAiEmbeddings(Members& members, TextTask& task) {
  task.inputs = members.Inputs("input", &task.field);
  task.checks_ids = true;  // clients may think that the model is OpenAI's
  task.normalize = members.Flag(members.Has("normalized") ? "normalized" : "normalize", true);
  task.dimensions =
      members.Count(members.Has("output_dimension") ? "output_dimension" : "dimensions");
  task.truncation = members.Truncation(kVoyageTruncation);
  task.prompt_name = members.Name("prompt_name");
  ReadPurpose(members, "input_type", task);
  ReadPurpose(members, "task", task);
  for (const char* other : {"late_chunking", "return_multivector"}) {
    if (members.Flag(other, false)) members.Refuse(other, "false", "true");
  }
  VectorForm form;
  // As Jina's API names it now and did before, and Voyage's.
  for (const char* type : {"embedding_type", "encoding_type", "output_dtype"}) {
    if (members.Has(type)) form = VectorFormOf(members.Choice(type, kVectorForms));
  }
  form.base64 |= members.Choice("encoding_format", {"float", "base64"}) == "base64";
  return [form](const std::shared_ptr<const DoneText>& done) {
    const int64_t tokens = done->result.total_tokens();
    const std::string head = absl::StrCat(
        "{\"object\":\"list\",\"model\":", text::QuoteJson(done->result.model),
        ",\"usage\":{\"prompt_tokens\":", tokens, ",\"total_tokens\":", tokens, "},\"data\":[");
    const auto append = [done, form](size_t index, std::string* to) {
      absl::StrAppend(to, "{\"object\":\"embedding\",\"index\":", index, ",\"embedding\":");
      AppendVector(form, done->Row(index), to);
      *to += '}';
    };
    return ListAnswer(head, done->inputs(), append, "]}");
  };
}

}  // namespace attendant::server
