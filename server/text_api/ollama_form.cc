// Ollama's API: vectors, and the lists that its clients ask for. Its members "options" and
// "keep_alive" are ignored: models stay loaded, and texts are truncated where the model's longest
// sequence ends, whatever num_ctx says.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

// As Ollama lists a model: with its tag. Clients with types want the other members.
std::string TaggedModelJson(const std::string& name) {
  const bool has_tag = absl::string_view(name).find(':') != absl::string_view::npos;
  const std::string tagged = text::QuoteJson(has_tag ? name : absl::StrCat(name, kOllamaTag));
  return absl::StrCat("{\"name\":", tagged, ",\"model\":", tagged,
                      ",\"modified_at\":\"1970-01-01T00:00:00Z\",\"size\":0,\"digest\":\"\","
                      "\"details\":{\"parent_model\":\"\",\"format\":\"\",\"family\":\"\","
                      "\"families\":[],\"parameter_size\":\"\",\"quantization_level\":\"\"}}");
}

}  // namespace

TextWriter ReadOllamaEmbed(Members& members, TextTask& task) {
  task.field = "input";
  task.inputs = members.TextOrTexts("input", nullptr);
  task.normalize = true;
  task.dimensions = members.Count("dimensions");
  task.truncation = members.Truncation();
  return [](const std::shared_ptr<const DoneText>& done) {
    const std::string head =
        absl::StrCat("{\"model\":", text::QuoteJson(done->result.model),
                     ",\"total_duration\":", absl::ToInt64Nanoseconds(done->result.elapsed),
                     ",\"load_duration\":0,\"prompt_eval_count\":", done->result.total_tokens(),
                     ",\"embeddings\":[");
    return VectorsAnswer(head, done, "]}");
  };
}

// The older route: one text, and its vector as the model makes it.
TextWriter ReadOllamaEmbeddings(Members& members, TextTask& task) {
  task.field = "prompt";
  task.inputs = {{members.Text("prompt")}};
  task.truncation = members.Truncation();
  return [](const std::shared_ptr<const DoneText>& done) {
    return VectorsAnswer("{\"embedding\":", done, "}");
  };
}

HttpAnswer OllamaModelsAnswer(const std::vector<std::string>& names) {
  std::vector<std::string> models;
  for (const std::string& name : names) models.push_back(TaggedModelJson(name));
  return JsonBody(absl::StrCat("{\"models\":[", absl::StrJoin(models, ","), "]}"));
}

HttpAnswer OllamaVersionAnswer(const std::string& version) {
  return JsonBody(absl::StrCat("{\"version\":", text::QuoteJson(version), "}"));
}

}  // namespace attendant::server
