// What an OpenCL device can do at best.
#pragma once

#include "text.h"

/// Adds one JSON object of what was measured on the first device with this name and driver version, by profiled
/// kernels: `copy_bytes_s` (read and written, buffer to buffer), `image_bytes_s` (read from an RGBA image of 32-bit
/// numbers), `float32_flop_s` and `float16_flop_s` (multiply and add, two operations each), and `problem`. Null is what
/// the device cannot do; `problem` is empty unless nothing could be measured.
void measure_peaks(const char* name, const char* driver, Text* json);
