// Models with a tokenizer, and callers of the text APIs.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/files/tokenization.h"
#include "tests/server/rest/rest_fixture.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {

// The id of "w<id>" is `id`, of 5 to 99; [PAD], [UNK], [CLS], [SEP] and [MASK] come before.
std::shared_ptr<const ModelTokenizer> WordsTokenizer();

// "tiny" makes vectors and has the prompts "query" (w5) and "document" (w6). "ranker" has a head
// for one class, "classes" for three, "labels" one that labels tokens, and "words" that of a masked
// language model. "bare" takes no texts. All others have 64 positions.
ServedModels ModelsOfTexts();

class TextFixture : public RestFixture {
 public:
  static TestServerOptions Serving(ServedModels models = ModelsOfTexts()) {
    TestServerOptions options;
    options.models = std::move(models);
    return options;
  }
  explicit TextFixture(TestServerOptions options = Serving(), const HttpLimits& limits = Limits(),
                       const ServerSecrets& secrets = {})
      : RestFixture(std::move(options), limits, secrets) {}

  RestResult Ask(const std::string& path, const Json& body, const std::string& headers = "") const {
    return Post(path, body.dump(-1, ' ', false, Json::error_handler_t::replace), headers);
  }
  // The vector of "tiny" for these ids, special ones included, as Encode over gRPC returns it.
  std::vector<float> VectorOf(const std::vector<int64_t>& ids, bool normalize = true);
  // The outputs of a classification head.
  std::vector<float> LogitsOf(const std::string& model, const std::vector<int64_t>& ids,
                              const std::vector<int64_t>& types = {});
};

// The sum over the query's vectors, of this width, of the largest product with one of the
// document's.
double MaxSimOf(const std::vector<float>& query, const std::vector<float>& document, size_t width);

// "w10 w11 …" with so many words, from this one on.
std::string Words(int count, int first = 10);

}  // namespace attendant::server
