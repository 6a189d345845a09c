// How many OpenCL programs TVM's runtime makes, and from what.
#pragma once

#include <stdint.h>

/// Counts from now on what TVM's libraries in this process create; says in how many places their calls are counted.
///
/// A library's calls into others go through a table of addresses. The entries of libtvm* for clCreateProgramWithSource
/// and clCreateProgramWithBinary are replaced by functions that count and call on; and that for dlsym, through which
/// TVM's own wrapper of OpenCL asks for these two at each call (opencl_wrapper.cc). Later calls change nothing.
int count_programs(void);
int64_t programs_from_source(void);
int64_t programs_from_binary(void);
