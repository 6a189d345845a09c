// The timing protocol of `harness.run.timing` and `harness.run.enqueued`, step by step the same, with its numbers.
#pragma once

#include "program.h"

/// Warms up, samples both clocks within the budget, and tells them.
void measure(Program* program);
