// Functions that make requests and their tensors, and read the tensors of answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attendant/v1/encoder_service.pb.h"
#include "attendant/v1/tensor.pb.h"

namespace attendant::server {

v1::Tensor FloatTensor(std::vector<int64_t> shape, const std::vector<float>& values,
                       v1::DataType dtype = v1::FLOAT32);
v1::Tensor IntegerTensor(std::vector<int64_t> shape, const std::vector<int64_t>& values,
                         v1::DataType dtype = v1::INT64);

// Returns a request to the first layer of a model; of the only one, if it has no name.
v1::AttendRequest AttendOf(const std::string& model, v1::Tensor hidden_states);

// Returns the elements of a float tensor.
std::vector<float> ToFloats(const v1::Tensor& tensor);
std::vector<int64_t> ShapeOf(const v1::Tensor& tensor);

// Returns the row-major elements of `count` rows of width `width`, from row `first` on.
std::vector<float> Rows(const std::vector<float>& values, int64_t width, int64_t first,
                        int64_t count);

// Returns the values rounded to a wire type and widened again.
std::vector<float> RoundedTo(v1::DataType dtype, std::vector<float> values);

// Returns values that are uniform in [-1, 1) and the same on every machine.
std::vector<float> SomeValues(int64_t count, uint32_t seed);

}  // namespace attendant::server
