#include "engine/model/head_description.h"

#include "absl/strings/str_cat.h"
#include "engine/base/names.h"

namespace attendant {
namespace {

constexpr Named<PoolingMode> kPoolingModes[] = {
    {"first_token", PoolingMode::kFirstToken},
    {"max", PoolingMode::kMax},
    {"mean", PoolingMode::kMean},
    {"mean_sqrt_len", PoolingMode::kMeanSqrtLen},
    {"position_weighted_mean", PoolingMode::kPositionWeightedMean},
    {"last_token", PoolingMode::kLastToken},
    {"feature_mean", PoolingMode::kFeatureMean},
    {"attention", PoolingMode::kAttention},
    {"late_mean", PoolingMode::kLateMean}};

constexpr Named<HeadKind> kHeadKinds[] = {{"none", HeadKind::kNone},
                                          {"pooling", HeadKind::kPooling},
                                          {"classifier", HeadKind::kClassifier},
                                          {"token_head", HeadKind::kTokenHead},
                                          {"lexical_head", HeadKind::kLexical}};

}  // namespace

std::vector<NamedDense> PoolingDescription::dense_layers() const {
  std::vector<NamedDense> layers;
  if (dense_width != 0) layers.push_back({"dense", first_dense()});
  if (output_width != 0) layers.push_back({"output", {output_width}});
  for (const DenseShape& dense : further_dense) {
    layers.push_back({absl::StrCat("further.", &dense - further_dense.data()), dense});
  }
  return layers;
}

const char* Name(PoolingMode mode) { return NameIn(kPoolingModes, mode); }
const char* Name(HeadKind kind) { return NameIn(kHeadKinds, kind); }

}  // namespace attendant
