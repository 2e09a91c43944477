// Environment variables that libraries read before main runs.
#pragma once

namespace attendant::server {

// Sets the variables below unless the user has set them, and executes this program again, which is
// the only way for libraries to see them:
// - GOMP_SPINCOUNT, unless OMP_WAIT_POLICY is set: a low limit for libgomp's threads to spin while
//   they wait for work.
// - GLIBC_TUNABLES: limits the C library's per-thread cache of freed memory to small blocks. The
//   loader ignores it in privileged programs, such as those with file capabilities.
// Returns if there is nothing to set, or if the program cannot be executed again. Must be the first
// call in main.
void SetLibraryVariables(char** argv);

}  // namespace attendant::server
