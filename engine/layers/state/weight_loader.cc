#include "engine/layers/state/weight_loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/matrix_view.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/convert.h"

namespace attendant {

LayerNormWeights NormParameters::view() const {
  return {.gamma = {gamma.data(), static_cast<size_t>(gamma.size())},
          .beta = {beta.data(), static_cast<size_t>(beta.size())},
          .epsilon = epsilon,
          .kind = kind == NormKind::kRmsPlusOne ? NormKind::kRms : kind};
}

namespace {

void ScaleRows(const AlignedBuffer<float>& scale, MatrixView<float> weight, float* bias) {
  for (int64_t r = 0; r < weight.rows; ++r) {
    for (int64_t j = 0; j < weight.cols; ++j) weight.row(r)[j] *= scale[r];
    bias[r] *= scale[r];
  }
}

}  // namespace

void AddProductPlans(absl::Span<const ProductPlan> more, std::vector<ProductPlan>& plans) {
  for (const ProductPlan& plan : more) {
    if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(plan);
  }
}

absl::Status WeightLoader::Read(absl::string_view name, absl::Span<float> target) {
  RETURN_IF_ERROR(source_.Read(name, target));
  CountRead(static_cast<int64_t>(target.size()));
  return absl::OkStatus();
}

void WeightLoader::CountRead(int64_t elements) {
  done_bytes_ += elements * static_cast<int64_t>(sizeof(float));
  progress_(done_bytes_, total_bytes_);
}

absl::StatusOr<PackedLinear> WeightLoader::ReadLinear(const std::string& name, int64_t out,
                                                      int64_t in, ProductRows use) {
  return ReadFusedLinear({{name, out}}, in, use);
}

absl::StatusOr<PackedLinear> WeightLoader::ReadFusedLinear(absl::Span<const LinearPart> parts,
                                                           int64_t in, ProductRows use) {
  int64_t out = 0;
  for (const LinearPart& part : parts) out += part.out;
  AlignedBuffer<float> weight(out * in);
  AlignedBuffer<float> bias(out);
  std::fill_n(bias.data(), out, 0.0f);
  bool has_bias = false;

  int64_t row = 0;
  for (const LinearPart& part : parts) {
    const absl::Span<float> rows(weight.data() + row * in, part.out * in);
    RETURN_IF_ERROR(Read(part.name + ".weight", rows));
    const std::string bias_name = part.name + ".bias";
    if (source_.Has(bias_name)) {
      has_bias = true;
      const absl::Span<float> elements(bias.data() + row, part.out);
      RETURN_IF_ERROR(Read(bias_name, elements));
    }
    if (!part.scale.empty()) {
      ASSIGN_OR_RETURN(AlignedBuffer<float> scale, ReadTable(part.scale, part.out));
      ScaleRows(scale, {rows.data(), part.out, in, in}, bias.data() + row);
    }
    row += part.out;
  }
  const absl::Span<const float> packed_bias(bias.data(), has_bias ? out : 0);
  return Pack({weight.data(), out, in, in}, packed_bias, use);
}

absl::StatusOr<PackedLinear> WeightLoader::ReadFloat32Linear(const std::string& name, int64_t out,
                                                             int64_t in) {
  ASSIGN_OR_RETURN(const AlignedBuffer<float> weight, ReadTable(name + ".weight", out * in));
  ASSIGN_OR_RETURN(const AlignedBuffer<float> bias, ReadOptional(name + ".bias", out));
  const absl::Span<const float> packed_bias(bias.data(), static_cast<size_t>(bias.size()));
  ASSIGN_OR_RETURN(PackedLinear packed, PackedLinear::Pack({weight.data(), out, in, in},
                                                           packed_bias, {}, team_, arena_));
  Count(packed, ProductRows::kBatch);  // float32 reads x itself, whatever the number of rows
  return packed;
}

void WeightLoader::Count(const PackedLinear& packed, ProductRows use) {
  if (use == ProductRows::kLoading) return;
  kept_bytes_ += packed.bytes();
  product_uses_.push_back({packed, use});
}

absl::StatusOr<PackedLinear> WeightLoader::Pack(MatrixView<const float> weight,
                                                absl::Span<const float> bias, ProductRows use) {
  ASSIGN_OR_RETURN(PackedLinear packed, PackedLinear::Pack(weight, bias, mode_, team_, arena_));
  const ProductPlan plan = packed.plan();
  if (!plan.exact) {
    return absl::FailedPreconditionError(absl::StrCat(
        "oneDNN's int8 products of ", plan.in, " inputs by ", plan.out,
        " outputs are not exact on this CPU (", absl::StrJoin(plan.implementations, ", "),
        "); use gemm=vector, or set emulate=true"));
  }
  AddProductPlans({plan}, product_plans_);
  Count(packed, use);
  return packed;
}

absl::StatusOr<AlignedBuffer<float>> WeightLoader::ReadBias(const LinearPart& part) {
  ASSIGN_OR_RETURN(AlignedBuffer<float> bias, ReadOptional(part.name + ".bias", part.out));
  if (bias.size() == 0) {
    bias = AlignedBuffer<float>(part.out);
    std::fill_n(bias.data(), part.out, 0.0f);
  }
  if (part.scale.empty()) return bias;
  ASSIGN_OR_RETURN(const AlignedBuffer<float> scale, ReadTable(part.scale, part.out));
  ScaleRows(scale, {nullptr, part.out, 0, 0}, bias.data());
  return bias;
}

absl::StatusOr<NormParameters> WeightLoader::ReadNorm(const std::string& name, int64_t width,
                                                      NormKind kind, float epsilon) {
  ASSIGN_OR_RETURN(AlignedBuffer<float> gamma, ReadGamma(name, width, kind));
  ASSIGN_OR_RETURN(AlignedBuffer<float> beta, ReadOptional(name + ".bias", width));
  return NormParameters{name, std::move(gamma), std::move(beta), epsilon, kind};
}

absl::StatusOr<int> WeightLoader::AddNorm(const std::string& name, int64_t width, NormKind kind,
                                          float epsilon) {
  const auto known = std::find_if(norms_.begin(), norms_.end(),
                                  [&](const NormParameters& norm) { return norm.name == name; });
  const auto index = static_cast<int>(known - norms_.begin());
  if (known != norms_.end()) return index;
  ASSIGN_OR_RETURN(NormParameters norm, ReadNorm(name, width, kind, epsilon));
  kept_bytes_ += norm.gamma.bytes() + norm.beta.bytes();
  norms_.push_back(std::move(norm));
  return index;
}

absl::Status WeightLoader::ReplaceNorms() {
  for (NormParameters& norm : norms_) {
    const int64_t width = norm.gamma.size();
    if (source_.Has(norm.name + ".weight")) {
      ASSIGN_OR_RETURN(AlignedBuffer<float> gamma, ReadGamma(norm.name, width, norm.kind));
      norm.gamma = Keep(std::move(gamma));
    }
    if (source_.Has(norm.name + ".bias")) {
      ASSIGN_OR_RETURN(AlignedBuffer<float> beta, ReadTable(norm.name + ".bias", width));
      norm.beta = Keep(std::move(beta));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AlignedBuffer<float>> WeightLoader::ReadGamma(const std::string& name, int64_t width,
                                                             NormKind kind) {
  ASSIGN_OR_RETURN(AlignedBuffer<float> gamma, ReadTable(name + ".weight", width));
  for (int64_t i = 0; kind == NormKind::kRmsPlusOne && i < width; ++i) gamma[i] += 1;
  return gamma;
}

absl::StatusOr<AlignedBuffer<float>> WeightLoader::ReadTable(const std::string& name,
                                                             int64_t elements) {
  AlignedBuffer<float> table(elements);
  RETURN_IF_ERROR(Read(name, {table.data(), static_cast<size_t>(elements)}));
  return table;
}

absl::StatusOr<AlignedBuffer<char>> WeightLoader::ReadStoredTable(const std::string& name,
                                                                  int64_t elements, DataType type) {
  AlignedBuffer<char> table(elements * ByteWidth(type));
  if (type == DataType::kFloat32) {
    float* floats = reinterpret_cast<float*>(table.data());
    RETURN_IF_ERROR(Read(name, {floats, static_cast<size_t>(elements)}));
    return table;
  }
  ASSIGN_OR_RETURN(
      const bool is_read,
      source_.ReadStored(name, type, {table.data(), static_cast<size_t>(table.size())}));
  if (is_read) {
    CountRead(elements);
    return table;
  }
  ASSIGN_OR_RETURN(AlignedBuffer<float> read, ReadTable(name, elements));
  FromFloat(read.data(), elements, type, table.data());
  return table;
}

absl::StatusOr<AlignedBuffer<float>> WeightLoader::ReadOptional(const std::string& name,
                                                                int64_t elements) {
  if (!source_.Has(name)) return AlignedBuffer<float>();
  return ReadTable(name, elements);
}

}  // namespace attendant
