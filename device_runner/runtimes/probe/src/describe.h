// What this process's OpenCL says of itself.
#pragma once

#include "text.h"

/// Adds one JSON object: `devices`, in OpenCL's own order, `files`, and `problem`, which is empty if there are devices.
void describe(Text* json);
