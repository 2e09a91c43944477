// A loaded model that requests can name.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/files/tokenization.h"
#include "engine/layers/encoder.h"
#include "engine/layers/state/row_plan.h"
#include "server/batching/cost_model.h"
#include "server/models/model_tokenizer.h"
#include "server/settings/settings.h"

namespace attendant::server {

// A number that no other object of the process has or has had, not even a copy.
class UniqueNumber {
 public:
  UniqueNumber() : value_(Next()) {}
  UniqueNumber(const UniqueNumber&) : UniqueNumber() {}
  UniqueNumber& operator=(const UniqueNumber&) = delete;

  int64_t value() const { return value_; }

 private:
  static int64_t Next() {
    static std::atomic<int64_t> last = 0;
    return ++last;
  }
  const int64_t value_;
};

// Immutable once prepared, except for its runs and for what the cost model learns, and shared by
// all requests that use it.
struct ServedModel {
  ServedModel(std::string model_name, std::shared_ptr<const Encoder> model_encoder,
              std::vector<std::string> unused = {})
      : name(std::move(model_name)),
        encoder(std::move(model_encoder)),
        unused_tensors(std::move(unused)),
        cost(std::make_shared<CostModel>(encoder->description())) {}

  std::string name;
  // Tells its results from those of all other models and versions, also in the same memory later.
  UniqueNumber number = {};
  int64_t version = 0;  // in the model repository; 0: from elsewhere
  HubOrigin origin = {};
  std::shared_ptr<const Encoder> encoder;
  // Tensors of the checkpoint that do not belong to the encoder.
  std::vector<std::string> unused_tensors;
  // Never null. An overlay has that of its base.
  std::shared_ptr<const Tokenization> tokenization = std::make_shared<const Tokenization>();
  // What makes token ids of texts. Never null; an overlay has that of its base.
  std::shared_ptr<const ModelTokenizer> tokenizer = std::make_shared<const ModelTokenizer>();
  // For an overlay, the name of the model with which it shares its weights, all except those that
  // the overlay replaces. Empty for any other model.
  std::string base = {};
  // Copies of `encoder` in the memory of the second and further NUMA nodes of the thread plan.
  std::vector<std::shared_ptr<const Encoder>> further_copies = {};
  std::shared_ptr<CostModel> cost;
  // The activations of each instance, which only the thread of that instance may use. Null until
  // the model has been prepared (server/execution/prepare_model.h).
  std::shared_ptr<std::vector<EncoderRun>> runs = {};
  RowPlan row_plan = {};  // of the runs
  // True once a newer version, or none, has been served for so long that what this one has made,
  // such as registered keys, is used no more.
  std::shared_ptr<std::atomic<bool>> retired = std::make_shared<std::atomic<bool>>(false);

  // Returns the encoder for node `i` of the thread plan.
  const std::shared_ptr<const Encoder>& copy(int i) const {
    return i == 0 ? encoder : further_copies[i - 1];
  }
};

// Models by name.
using ServedModels = std::map<std::string, std::shared_ptr<const ServedModel>>;

}  // namespace attendant::server
