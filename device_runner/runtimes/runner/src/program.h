// A compiled case in this process: what `device_runner.direct.worker` does in Python, in C.
#pragma once

#include "case.h"
#include "numbers.h"

typedef struct {
  const Case* packed;
  TVMFFIAny module, machine, invoke, probe;
} Program;

/// Loads TVM's runtime; afterwards functions can be called.
void load_runtime(const Case* packed);
/// A module from a library.
TVMFFIAny load_module(const char* path);
/// What one of the probe's functions without arguments returns.
TVMFFIAny ask(TVMFFIAny probe, const char* function);

void load_program(Program* program, const Case* packed);
/// Runs once and tells the answer; whether each number of it is near enough to be timed. The host judges it.
int run_once(Program* program);
/// So many samples in ms by TVM's own evaluator: by the host's clock of `host_entry`, by the device's timer of `entry`.
void sample(Program* program, int by_device, size_t count, Numbers* into);
