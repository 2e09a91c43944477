// Maxima of the columns of a matrix, for vectors over a vocabulary.
#pragma once

#include "engine/base/matrix_view.h"

namespace attendant {

// Raises target[j] to the largest of itself and x[r][j] over all rows r. target: [x.cols]. A NaN in
// a column, or in its target, makes the target NaN. Does not allocate. The bits do not depend on
// the order of the rows or on how they are divided among calls, but for the sign of zero.
void RaiseToColumnMax(MatrixView<const float> x, float* target);

}  // namespace attendant
