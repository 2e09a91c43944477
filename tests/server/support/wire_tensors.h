// Tensors of requests and answers, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "attendant/v1/tensor.pb.h"

namespace attendant::server {

v1::Tensor FloatTensor(std::vector<int64_t> shape, const std::vector<float>& values,
                       v1::DataType dtype = v1::FLOAT32);
v1::Tensor IntegerTensor(std::vector<int64_t> shape, const std::vector<int64_t>& values,
                         v1::DataType dtype = v1::INT64);

// Of a float tensor.
std::vector<float> ToFloats(const v1::Tensor& tensor);
std::vector<int64_t> ShapeOf(const v1::Tensor& tensor);

// Row-major elements of `count` rows of `width`, from row `first` on.
std::vector<float> Rows(const std::vector<float>& values, int64_t width, int64_t first,
                        int64_t count);

// Rounded to a wire type and back.
std::vector<float> RoundedTo(v1::DataType dtype, std::vector<float> values);

// Uniform in [-1, 1), the same on every machine.
std::vector<float> SomeValues(int64_t count, uint32_t seed);

}  // namespace attendant::server
