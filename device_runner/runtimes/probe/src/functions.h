// What the probe's functions do; `module.c` offers them to TVM.
#pragma once

#include <stdint.h>
#include <tvm/ffi/c_api.h>

#include "text.h"

/// Adds one JSON object of what this process's OpenCL says of itself: `devices`, in OpenCL's own order, `files`, and
/// `problem`, which is empty if there are devices.
void describe(Text* json);

/// Adds {"process": bytes, "gpu": bytes}: the most memory that this process has had so far, by the kernel (proc(5), VmHWM)
/// and by Qualcomm's driver for its GPU (kgsl_sharedmem.c, `kernel_max` of a process). 0 is not known.
void tell_memory(Text* json);

/// Counts from now on what OpenCL programs TVM's libraries in this process create, and from what; says in how many places
/// their calls are counted. Later calls change nothing.
int count_programs(void);
int64_t programs_from_source(void);
int64_t programs_from_binary(void);

/// Keeps from now on every launch of a kernel; says in how many places launches are seen. Later calls change nothing.
int watch_kernels(void);
/// Adds JSON of the launches since the last call, oldest first, and forgets them:
/// {"launches": [{"kernel": name, "global": [3 numbers], "local": [3 numbers], "queued": ns, "submit": ns, "start": ns,
/// "end": ns}, ...], "untimed": how many went to a queue without profiling, "dropped": how many there was no room for}.
/// Times are the device's own. Wait for the queue first: a kernel that still runs is untimed.
void tell_launches(Text* json);

enum { MOST_BATCHES = 64 };
/// Adds {"batched_ns": [...], "synced_ns": [...]}: by this machine's clock, what one inference took in each of `repeat`
/// batches of `size` that were enqueued and then waited for, and in as many of which each was waited for. `invoke` runs
/// `entry` once; the OpenCL device is waited for. 0, or the code of what failed.
int time_batches(TVMFFIObjectHandle invoke, const char* entry, int64_t size, int64_t repeat, Text* json);
