// Many inferences with one synchronisation at their end, beside as many with one each.
#pragma once

#include <tvm/ffi/c_api.h>

#include "text.h"

enum { MOST_BATCHES = 64 };

/// Adds {"batched_ns": [...], "synced_ns": [...]}: by this machine's clock, what one inference took in each of `repeat`
/// batches of `size` that were enqueued and then waited for, and in as many of which each was waited for. `invoke` runs
/// `entry` once; the OpenCL device is waited for. 0, or the code of what failed.
int time_batches(TVMFFIObjectHandle invoke, const char* entry, int64_t size, int64_t repeat, Text* json);
