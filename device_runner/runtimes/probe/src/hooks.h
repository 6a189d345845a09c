// Calls of TVM's libraries into OpenCL, led through functions of ours.
#pragma once

#include <stddef.h>

/// One function of OpenCL and what TVM's libraries call instead of it.
typedef struct Hook {
  const char* name;
  void* ours;
  void* real;  // what `ours` calls on to; filled in when the first call is led here
  struct Hook* next;
} Hook;

/// Leads calls through these hooks from now on; in how many places it found something to lead.
///
/// A library's calls into others go through a table of addresses. In that of each libtvm* the entries for these
/// functions are replaced; and that for dlsym, through which TVM's own wrapper of OpenCL asks for its functions at each
/// call (opencl_wrapper.cc). A hook is led through once and for all: install it once.
int install(Hook* hooks, size_t count);
