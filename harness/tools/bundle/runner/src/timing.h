// The timing protocol of `harness.measure.probes.latency` and `harness.measure.probes.batches`, with the numbers of the turn's file.
#pragma once

#include "program.h"

/// Runs until the times are steady, or the warm-up's share of the budget is spent; adds all of them.
void warm_up(Program* program, Numbers* times);
/// Warms up, samples both clocks within the budget, and tells them; returns the median of the wall times in ms.
double measure(Program* program);
/// Times inferences of `each_ms` enqueued with one synchronisation beside as many with one each, and tells them, if the
/// budget allows it.
void time_batches(Program* program, TVMFFIAny probe, double each_ms);
