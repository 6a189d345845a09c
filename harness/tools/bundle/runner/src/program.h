// A library with a Relax virtual machine, loaded in this process.
#pragma once

#include "case.h"
#include "numbers.h"

typedef struct {
  const Artifact* artifact;
  const Protocol* rules;
  TVMFFIAny module, machine, invoke;
} Program;

/// Loads TVM's runtime; afterwards functions can be called.
void load_runtime(const Case* packed);
/// A module from a library.
TVMFFIAny load_module(const char* path);
/// What one of the probe's functions without arguments returns.
TVMFFIAny ask(TVMFFIAny probe, const char* function);
/// Tells what one of them returned.
void tell_answer(const char* name, TVMFFIAny answer);

/// Loads and initialises; returns the ms that took.
double load_program(Program* program, const Artifact* artifact, const Protocol* rules);
/// Its OpenCL programs as the device compiled them, kept in a file; and taken from there, before the first run.
void save_binaries(Program* program, const char* file);
void use_binaries(Program* program, const char* file);

/// The content of a tensor's file, which has so many of them one after the other.
const char* content_of_file(const Tensor* tensor, size_t count);
/// Gives both entries their inputs, whose contents have to stay where they are.
void give_inputs(Program* program, const Tensor* inputs, const char* const* contents, size_t count);
/// Runs once; returns the ms that took.
double run(Program* program);
/// Tells the outputs of the last run under a name; whether each is near enough to the answers to be timed, if any are
/// given. The host judges them.
int tell_outputs(Program* program, const char* name, const Tensor* answers, size_t answer_count);
/// So many samples in ms by TVM's own evaluator: by the host's clock of `host_entry`, by the device's timer of `entry`.
void sample(Program* program, int by_device, size_t count, Numbers* into);
