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

// A number unique among all objects that have ever existed in this process, including copies.
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

// Immutable once prepared, except for its runs and the learned costs; shared by all requests that
// use it.
struct ServedModel {
  ServedModel(std::string model_name, std::shared_ptr<const Encoder> model_encoder,
              std::vector<std::string> unused = {})
      : name(std::move(model_name)),
        encoder(std::move(model_encoder)),
        unused_tensors(std::move(unused)),
        cost(std::make_shared<CostModel>(encoder->description())) {}

  std::string name;
  // Identifies its results even if another model or version later reuses the memory.
  UniqueNumber number = {};
  int64_t version = 0;  // in the model repository; 0 for models from elsewhere
  HubOrigin origin = {};
  std::shared_ptr<const Encoder> encoder;
  // Tensors of the checkpoint that do not belong to the encoder.
  std::vector<std::string> unused_tensors;
  // Never null. An overlay shares its base's.
  std::shared_ptr<const Tokenization> tokenization = std::make_shared<const Tokenization>();
  // Converts texts to token ids. Never null; an overlay shares its base's.
  std::shared_ptr<const ModelTokenizer> tokenizer = std::make_shared<const ModelTokenizer>();
  // For an overlay, the name of the model that shares its weights, except those that the overlay
  // replaces; otherwise empty.
  std::string base = {};
  // Copies of `encoder` in the memory of the other NUMA nodes of the thread plan.
  std::vector<std::shared_ptr<const Encoder>> further_copies = {};
  std::shared_ptr<CostModel> cost;
  // Activations of each instance, used only on that instance's thread. Null until the model has
  // been prepared (server/execution/prepare_model.h).
  std::shared_ptr<std::vector<EncoderRun>> runs = {};
  RowPlan row_plan = {};  // of the runs
  // Set once another version, or none, has been served for so long that this version's registered
  // keys and sequences are no longer valid.
  std::shared_ptr<std::atomic<bool>> retired = std::make_shared<std::atomic<bool>>(false);

  // Returns the encoder for node `i` of the thread plan.
  const std::shared_ptr<const Encoder>& copy(int i) const {
    return i == 0 ? encoder : further_copies[i - 1];
  }
};

// Models by name.
using ServedModels = std::map<std::string, std::shared_ptr<const ServedModel>>;

// A range of consecutive layers of a served model.
struct LayerSpan {
  std::shared_ptr<const ServedModel> model;
  int64_t first_layer = 0;
  int64_t layers = 1;

  const ModelDescription& description() const { return model->encoder->description(); }

  friend bool operator==(const LayerSpan&, const LayerSpan&) = default;
};

}  // namespace attendant::server
