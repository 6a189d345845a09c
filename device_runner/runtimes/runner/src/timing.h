// The timing protocol of `harness.probes.latency` and `harness.probes.batches`, step by step the same, with its numbers.
#pragma once

#include "program.h"

/// Warms up, samples both clocks within the budget, and tells them.
void measure(Program* program);
