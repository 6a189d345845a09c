// How many OpenCL programs TVM's runtime makes, and from what.
#pragma once

#include <stdint.h>

/// Counts from now on what TVM's libraries in this process create; says in how many places their calls are counted.
/// Later calls change nothing.
int count_programs(void);
int64_t programs_from_source(void);
int64_t programs_from_binary(void);
