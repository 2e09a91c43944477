// Scores of classes, made of the outputs of a classification head.
#pragma once

#include <cstddef>
#include <vector>

#include "client/tensor.h"

namespace attendant::v1 {
enum ScoreFunction : int;
}  // namespace attendant::v1

namespace attendant::client {

// Returns the scores of each row of outputs, float32 [rows, classes]. SCORES_UNKNOWN, of older
// servers: a sigmoid of a single class, else a softmax.
std::vector<std::vector<double>> Scores(v1::ScoreFunction function, const Tensor& outputs);

// Returns the places of scores, the highest first; equal ones in their order.
std::vector<size_t> BestFirst(const std::vector<double>& scores);

}  // namespace attendant::client
