// Limit of the time for which libgomp's threads spin while they wait for work.
#pragma once

namespace attendant::server {

// Sets a low GOMP_SPINCOUNT and executes this program again, because libgomp reads its variables
// before main runs. Returns if the user has set GOMP_SPINCOUNT or OMP_WAIT_POLICY, or if the
// program cannot be executed again. Must be the first call in main.
void LimitOpenMpSpinning(char** argv);

}  // namespace attendant::server
