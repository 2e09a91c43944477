// libgomp's workers spin while they wait for work.
#pragma once

namespace attendant::server {

// Executes this program again with a short GOMP_SPINCOUNT, unless the user has set that or
// OMP_WAIT_POLICY: libgomp reads both before main runs, so that setting them here would be too
// late. First thing in main; returns if there is nothing to do or it cannot be done.
void LimitOpenMpSpinning(char** argv);

}  // namespace attendant::server
