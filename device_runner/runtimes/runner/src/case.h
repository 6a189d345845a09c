// A turn as the host wrote it down: one thing in each line, a word and what belongs to it, a path always last.
#pragma once

#include <stddef.h>
#include <tvm/ffi/c_api.h>

enum { MOST_TENSORS = 64, MOST_LIBRARIES = 16, MOST_AXES = 16 };

typedef struct {
  const char* file;
  DLDataType dtype;
  int ndim;
  int64_t shape[MOST_AXES];
  double tolerance;  // of an answer: how far each number may be off; an integer not at all
} Tensor;

/// The numbers of the protocol, as `harness.probes.latency` and `harness.probes.batches` explain them.
typedef struct {
  double timeout_s, seconds, samples, quick, quick_samples, steady_s, sampled_s, fewest, fewest_device, agree_within,
      warm_up_share, device_share, warm_up_kept, most_inferences, shortest_ms, call_share, batch_share, batch_repeat,
      smallest_batch, largest_batch;
} Protocol;

typedef struct {
  const char* libraries[MOST_LIBRARIES];
  size_t library_count;
  const char* probe;    // NULL without one
  const char* library;  // the artifact; NULL if only the device is asked
  const char* entry;
  const char* host_entry;
  double vdevices;
  Tensor inputs[MOST_TENSORS], answers[MOST_TENSORS];
  size_t input_count, answer_count;
  Protocol protocol;
} Case;

/// Reads one; what is wrong with it ends the process (`tell_broken`).
void read_case(const char* path, Case* into);
size_t bytes_of(const int64_t* shape, int ndim, DLDataType dtype);
