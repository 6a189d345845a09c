// A turn as the host wrote it down: one thing in each line, a word and what belongs to it, a path always last.
#pragma once

#include <stddef.h>
#include <tvm/ffi/c_api.h>

enum { MOST_TENSORS = 64, MOST_LIBRARIES = 16, MOST_AXES = 16, MOST_SHARES = 8 };

typedef struct {
  const char* file;
  DLDataType dtype;
  int ndim;
  int64_t shape[MOST_AXES];
  double tolerance;  // of an answer: how far each number may be off; an integer not at all
} Tensor;

/// A library, and how its virtual machine is called.
typedef struct {
  const char* library;  // NULL if there is none
  const char* entry;
  const char* host_entry;
  double vdevices;
} Artifact;

/// The numbers of the protocol: each is a line of the file. `harness.measure.probes.latency` and `harness.tools.bundle.turn_files`
/// explain them, and are the only place that has their values.
#define PROTOCOL_NUMBERS(NUMBER)                                                                                     \
  NUMBER(timeout_s) NUMBER(seconds) NUMBER(samples) NUMBER(quick) NUMBER(quick_samples) NUMBER(steady_s)             \
  NUMBER(sampled_s) NUMBER(fewest) NUMBER(fewest_device) NUMBER(agree_within) NUMBER(warm_up_share)                  \
  NUMBER(device_share) NUMBER(warm_up_kept) NUMBER(most_inferences) NUMBER(shortest_ms) NUMBER(call_share)           \
  NUMBER(batch_share) NUMBER(batch_repeat) NUMBER(smallest_batch) NUMBER(largest_batch) NUMBER(reference_timeout_s)  \
  NUMBER(reference_seconds) NUMBER(first_turns) NUMBER(growth) NUMBER(grown) NUMBER(long_ms) \
  NUMBER(ticks) NUMBER(too_long_ms)
typedef struct {
#define NUMBER(name) double name;
  PROTOCOL_NUMBERS(NUMBER)
#undef NUMBER
} Protocol;

/// A share of the reference kernel's turns, and how many samples are taken of it.
typedef struct {
  double share, samples;
} Share;

typedef struct {
  const char* libraries[MOST_LIBRARIES];
  size_t library_count;
  const char* loader;  // of OpenCL, for a machine that has none; NULL without one
  const char* probe;   // NULL without one
  const char* peaks;   // what measures the device's peak rates; NULL without one
  Artifact artifact;   // without a library only the device is asked
  const char* binaries;      // where its programs are kept as the device compiled them; NULL if it is not tuned so
  const char* tuning_cache;  // where CLML's tuning is kept; NULL if it is not tuned so
  Artifact reference;        // the reference kernel
  const char* reference_binaries;
  const char* reference_turns;  // where the number of its turns is kept
  Share tried[MOST_SHARES], played[MOST_SHARES];
  size_t tried_count, played_count;
  Tensor inputs[MOST_TENSORS], answers[MOST_TENSORS];
  size_t input_count, answer_count;
  Tensor others[MOST_TENSORS];  // other inputs, which the program is run on before it is run again on its own
  size_t other_count;
  Tensor labelled;  // further inputs, one after the other in its file
  double labelled_count;
  Protocol protocol;
} Case;

/// Reads one; what is wrong with it ends the process (`tell_broken`).
void read_case(const char* path, Case* into);
size_t bytes_of(const int64_t* shape, int ndim, DLDataType dtype);
