#include "engine/layers/state/weight_loader.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/matrix_view.h"
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

void WeightLoader::Read(const std::string& name, absl::Span<float> target) {
  if (status_.ok()) status_ = source_.Read(name, target);
  if (status_.ok()) return CountRead(static_cast<int64_t>(target.size()));
  std::fill(target.begin(), target.end(), 0.0f);
}

void WeightLoader::CountRead(int64_t elements) {
  done_bytes_ += elements * static_cast<int64_t>(sizeof(float));
  progress_(done_bytes_, total_bytes_);
}

PackedLinear WeightLoader::ReadFusedLinear(absl::Span<const LinearPart> parts, int64_t in,
                                           ProductRows use) {
  if (!status_.ok()) return {};
  int64_t out = 0;
  for (const LinearPart& part : parts) out += part.out;
  AlignedBuffer<float> weight(out * in);
  AlignedBuffer<float> bias(out);
  std::fill_n(bias.data(), out, 0.0f);
  bool has_bias = false;

  int64_t row = 0;
  for (const LinearPart& part : parts) {
    const MatrixView<float> rows = {weight.data() + row * in, part.out, in, in};
    Read(part.name + ".weight", {rows.data, static_cast<size_t>(part.out * in)});
    if (source_.Has(part.name + ".bias")) {
      has_bias = true;
      Read(part.name + ".bias", {bias.data() + row, static_cast<size_t>(part.out)});
    }
    if (!part.scale.empty()) {
      ScaleRows(ReadTable(part.scale, part.out), rows, bias.data() + row);
    }
    row += part.out;
  }
  return Pack({weight.data(), out, in, in}, {bias.data(), static_cast<size_t>(has_bias ? out : 0)},
              use);
}

PackedLinear WeightLoader::Pack(MatrixView<const float> weight, absl::Span<const float> bias,
                                ProductRows use) {
  if (!status_.ok()) return {};
  const bool is_float32 = use == ProductRows::kFloat32;
  absl::StatusOr<PackedLinear> packed =
      PackedLinear::Pack(weight, bias, is_float32 ? ComputeMode() : mode_, team_, arena_);
  status_ = packed.status();
  if (!packed.ok()) return {};
  const ProductPlan& plan = packed->plan();
  if (!is_float32 && !plan.exact) {
    status_ = absl::FailedPreconditionError(absl::StrCat(
        "oneDNN's int8 products of ", plan.in, " inputs by ", plan.out,
        " outputs are not exact on this CPU (", absl::StrJoin(plan.implementations, ", "),
        "); use gemm=vector, or set emulate=true"));
    return {};
  }
  if (!is_float32) AddProductPlans({plan}, product_plans_);
  if (use != ProductRows::kLoading) {
    kept_bytes_ += packed->bytes();
    product_uses_.push_back({*packed, use});
  }
  return *std::move(packed);
}

AlignedBuffer<float> WeightLoader::ReadBias(const LinearPart& part) {
  AlignedBuffer<float> bias = ReadOptional(part.name + ".bias", part.out);
  if (bias.size() == 0) {
    bias = AlignedBuffer<float>(part.out);
    std::fill_n(bias.data(), part.out, 0.0f);
  }
  if (part.scale.empty()) return bias;
  ScaleRows(ReadTable(part.scale, part.out), {nullptr, part.out, 0, 0}, bias.data());
  return bias;
}

NormParameters WeightLoader::ReadNorm(const std::string& name, int64_t width, NormKind kind,
                                      float epsilon) {
  return {name, ReadGamma(name, width, kind), ReadOptional(name + ".bias", width), epsilon, kind};
}

int WeightLoader::AddNorm(const std::string& name, int64_t width, NormKind kind, float epsilon) {
  const auto known = std::find_if(norms_.begin(), norms_.end(),
                                  [&](const NormParameters& norm) { return norm.name == name; });
  const auto index = static_cast<int>(known - norms_.begin());
  if (known != norms_.end()) return index;
  const NormParameters& norm = norms_.emplace_back(ReadNorm(name, width, kind, epsilon));
  kept_bytes_ += norm.gamma.bytes() + norm.beta.bytes();
  return index;
}

void WeightLoader::ReplaceNorms() {
  for (NormParameters& norm : norms_) {
    const int64_t width = norm.gamma.size();
    if (!status_.ok()) return;
    if (source_.Has(norm.name + ".weight")) {
      norm.gamma = Keep(ReadGamma(norm.name, width, norm.kind));
    }
    if (source_.Has(norm.name + ".bias")) norm.beta = Keep(ReadTable(norm.name + ".bias", width));
  }
}

AlignedBuffer<float> WeightLoader::ReadGamma(const std::string& name, int64_t width,
                                             NormKind kind) {
  AlignedBuffer<float> gamma = ReadTable(name + ".weight", width);
  for (int64_t i = 0; kind == NormKind::kRmsPlusOne && i < width; ++i) gamma[i] += 1;
  return gamma;
}

AlignedBuffer<float> WeightLoader::ReadTable(const std::string& name, int64_t elements) {
  AlignedBuffer<float> table(elements);
  Read(name, {table.data(), static_cast<size_t>(elements)});
  return table;
}

AlignedBuffer<char> WeightLoader::ReadStoredTable(const std::string& name, int64_t elements,
                                                  DataType type) {
  AlignedBuffer<char> table(elements * ByteWidth(type));
  if (type == DataType::kFloat32) {
    Read(name, {reinterpret_cast<float*>(table.data()), static_cast<size_t>(elements)});
    return table;
  }
  bool is_read = false;
  if (status_.ok()) {
    const absl::StatusOr<bool> stored =
        source_.ReadStored(name, type, {table.data(), static_cast<size_t>(table.size())});
    status_ = stored.status();
    is_read = stored.ok() && *stored;
  }
  if (!status_.ok()) {
    std::fill_n(table.data(), table.size(), '\0');
  } else if (is_read) {
    CountRead(elements);
  } else {
    FromFloat(ReadTable(name, elements).data(), elements, type, table.data());
  }
  return table;
}

AlignedBuffer<float> WeightLoader::ReadOptional(const std::string& name, int64_t elements) {
  return source_.Has(name) ? ReadTable(name, elements) : AlignedBuffer<float>();
}

}  // namespace attendant
