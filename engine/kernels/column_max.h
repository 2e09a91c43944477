// Column maxima of a matrix, for pooling and for sparse vectors over a vocabulary.
#pragma once

#include "engine/base/matrix_view.h"

namespace attendant {

// Sets target[j] to the maximum of itself and x[r][j] over all rows r. `target` is [x.cols]. A NaN
// in a column or in its target makes the target NaN. Does not allocate. The bits, except the sign
// of zero, do not depend on the order of the rows or on how they are split into calls.
void RaiseToColumnMax(MatrixView<const float> x, float* target);

}  // namespace attendant
