#include "server/wire/tensor_fields.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "attendant/v1/tensor.pb.h"

namespace attendant::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

class Finder {
 public:
  // Adds to `here` the fields of `type` that lead to tensor data. Returns false if there is none.
  bool AddFields(const Descriptor* type, TensorField& here) {
    if (type == v1::Tensor::descriptor()) {
      AddPayload(here.fields[v1::Tensor::kDataFieldNumber], false);
      return true;
    }
    if (std::count(open_.begin(), open_.end(), type) > 0) return false;
    open_.push_back(type);
    for (int i = 0; i < type->field_count(); ++i) AddField(*type->field(i), here);
    open_.pop_back();
    return !here.fields.empty();
  }

  std::unique_ptr<const TensorFields> Find(const Descriptor* type) {
    AddFields(type, found_->root);
    return std::move(found_);
  }

 private:
  void AddPayload(TensorField& field, bool repeated) {
    field.payload = static_cast<int>(found_->payloads.size());
    found_->payloads.push_back({path_, repeated});
  }

  void AddField(const FieldDescriptor& field, TensorField& here) {
    const bool payloads =
        field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    if (!payloads && (field.type() != FieldDescriptor::TYPE_MESSAGE || field.is_repeated() ||
                      field.real_containing_oneof() != nullptr)) {
      return;
    }
    path_.push_back(field.number());
    if (payloads) {
      AddPayload(here.fields[field.number()], true);
      path_.pop_back();
      return;
    }
    TensorField inside;
    if (AddFields(field.message_type(), inside))
      here.fields.emplace(field.number(), std::move(inside));
    path_.pop_back();
  }

  std::unique_ptr<TensorFields> found_ = std::make_unique<TensorFields>();
  std::vector<const Descriptor*> open_;
  std::vector<int> path_;
};

}  // namespace

const TensorFields& TensorFieldsOf(const Descriptor* type) {
  static std::mutex mutex;
  static auto& known = *new std::map<const Descriptor*, std::unique_ptr<const TensorFields>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<const TensorFields>& fields = known[type];
  if (fields == nullptr) fields = Finder().Find(type);
  return *fields;
}

}  // namespace attendant::server
