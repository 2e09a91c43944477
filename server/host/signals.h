// SIGTERM and SIGINT.
#pragma once

#include "server/batching/clock.h"

namespace attendant::server {

// Takes the two signals away from every thread started after this; call it before any is. Until
// KeepStopSignal, when nothing has been accepted yet, a signal ends the process at once, with 128 +
// its number as exit code.
// `clock` outlives the process.
void TakeStopSignals(const Clock& clock = RealClock());

// From now on the first signal waits for AwaitStopSignal. A second one ends the process at once, as
// above, if it comes half a second later or more: shells and `timeout` send theirs twice, to the
// process and to its group.
void KeepStopSignal();

// Waits for the first signal.
void AwaitStopSignal();

}  // namespace attendant::server
