// The reference kernel, as `harness.measure.probes.reference` explains it, with the numbers of the turn's file.
#pragma once

#include "case.h"
#include "program.h"

/// The case's numbers, but for the time that the reference kernel may take.
Protocol reference_rules(const Case* packed);
/// Compiles the kernel by running it once, and keeps its binaries in a file.
void compile_reference(const Case* packed, const char* binaries);
/// Finds how many turns are long enough on this device, and keeps the number in a file.
void find_turns(const Case* packed, const char* binaries, const char* turns);
/// Times it with so many turns as are kept, and tells the samples in the order in which they were taken.
void play_reference(const Case* packed, const char* binaries, const char* turns);
