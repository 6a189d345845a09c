// OpenCL 1.2, its errors as exceptions in TVM's words, and its objects as owners that release themselves.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>

namespace adreno_bench {

/// The constant's name (`CL_OUT_OF_RESOURCES`) of those that TVM knows.
const char* ErrorName(cl_int code);

/// Throws InternalError "OpenCL Error, code=<code>: <name>", as TVM's runtime does, unless `e` is CL_SUCCESS.
void Check(cl_int e);

template <auto release>
struct Releaser {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};

using Context = std::unique_ptr<_cl_context, Releaser<clReleaseContext>>;
using CommandQueue = std::unique_ptr<_cl_command_queue, Releaser<clReleaseCommandQueue>>;
using Event = std::unique_ptr<_cl_event, Releaser<clReleaseEvent>>;
using MemObject = std::unique_ptr<_cl_mem, Releaser<clReleaseMemObject>>;
using Program = std::unique_ptr<_cl_program, Releaser<clReleaseProgram>>;
using Kernel = std::unique_ptr<_cl_kernel, Releaser<clReleaseKernel>>;

}  // namespace adreno_bench
