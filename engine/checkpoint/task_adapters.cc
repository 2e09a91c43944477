#include "engine/checkpoint/task_adapters.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

constexpr absl::string_view kOriginal = ".parametrizations.weight.original";
constexpr absl::string_view kA = ".parametrizations.weight.0.lora_A";
constexpr absl::string_view kB = ".parametrizations.weight.0.lora_B";

Json ReadConfig(const std::string& folder) {
  return ReadObjectOrEmpty(absl::StrCat(folder, "/config.json"));
}

}  // namespace

bool IsOfTaskAdapter(absl::string_view name) {
  return absl::EndsWith(name, kA) || absl::EndsWith(name, kB);
}

std::vector<std::string> ListTasks(const std::string& folder) {
  std::vector<std::string> tasks;
  for (const Json& task : ReadConfig(folder).value("lora_adaptations", Json::array())) {
    tasks.push_back(task.is_string() ? task.get<std::string>() : "");
  }
  return tasks;
}

absl::StatusOr<TaskProducts> BindTaskAdapter(const std::string& folder, const std::string& task,
                                             WeightBinder& binder) {
  const std::vector<std::string> tasks = ListTasks(folder);
  const auto found = std::find(tasks.begin(), tasks.end(), task);
  if (found == tasks.end()) {
    return InvalidArgument(folder, ": task: ",
                           tasks.empty() ? "not supported (config.json has no lora_adaptations)"
                                         : "expected one of " + absl::StrJoin(tasks, ", "),
                           "; got ", Quoted(task));
  }
  const Json alpha = ReadConfig(folder).value("lora_alpha", Json());
  if (!alpha.is_number()) {
    return InvalidArgument(folder, "/config.json: lora_alpha: expected a number; got ",
                           Describe(alpha));
  }
  const RowPart part = {found - tasks.begin(), std::ssize(tasks)};
  TaskProducts products;
  for (const std::string& name : binder.Unbound()) {
    absl::string_view stem = name;
    if (!absl::ConsumeSuffix(&stem, kA)) continue;
    const std::string b_name = absl::StrCat(stem, kB), original = absl::StrCat(stem, kOriginal);
    const FileTensor* weight = binder.Find(original);
    if (weight == nullptr || weight->shape.size() != 2) continue;  // SortOutTheRest names it
    const std::vector<int64_t>& a = binder.Find(name)->shape;
    const int64_t rows = weight->shape[0], columns = weight->shape[1];
    const bool is_table = a.size() == 3 && a[1] == rows && a[2] != columns;
    const int64_t rank = a.size() == 3 ? a[is_table ? 2 : 1] : 0;
    if (rank < 1 || a[0] != part.count) {
      binder.Refuse(binder.Show(name), ": expected [", part.count, ", rank, ", columns, "] or [",
                    part.count, ", ", rows, ", rank]");
      continue;
    }
    binder.Bind({name, {1, is_table ? rows : rank, is_table ? rank : columns}}, {{name, part}});
    binder.Bind({b_name, {1, is_table ? rank : rows, is_table ? columns : rank}}, {{b_name, part}});
    const double scale = alpha.get<double>() / static_cast<double>(rank);
    products.emplace_back(original, LowRankProduct{.left = is_table ? name : b_name,
                                                   .right = is_table ? b_name : name,
                                                   .rank = rank,
                                                   .scale = static_cast<float>(scale)});
  }
  if (products.empty()) binder.Refuse("task: the files have no task adapters");
  return products;
}

absl::Status AddTaskAdapter(TaskProducts adapter, Checkpoint& checkpoint) {
  std::map<std::string, const CheckpointTensor*> tensors;
  for (const CheckpointTensor& tensor : checkpoint.tensors) tensors[tensor.name] = &tensor;
  const WeightShapes shapes = ShapesOf(checkpoint.description);
  LowRankProducts products;
  for (auto& [original, product] : adapter) {
    const CheckpointTensor& tensor = *tensors.at(original);
    if (tensor.weights.empty()) continue;  // of a pooler that is not used, for example
    LowRankProducts of_tensor = OfTensor(tensor, shapes, std::move(product));
    if (of_tensor.empty()) {
      return InvalidArgument(
          tensor.file, ": tensor ", Quoted(original),
          ": expected a matrix of whole weights for the task adapter; got part of its rows");
    }
    products.merge(of_tensor);
  }
  AddProducts(products, nullptr, checkpoint);
  return absl::OkStatus();
}

}  // namespace attendant
