// The few types, constants and functions of OpenCL that the probe uses, and how it finds the library.
//
// Declared here because no header of OpenCL is around where this is compiled for a phone. Names and values: the Khronos
// registry, api/CL/cl.h (OpenCL 3.0).
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef struct _cl_platform_id* cl_platform_id;
typedef struct _cl_device_id* cl_device_id;
typedef struct _cl_context* cl_context;
typedef struct _cl_command_queue* cl_command_queue;
typedef struct _cl_program* cl_program;
typedef struct _cl_kernel* cl_kernel;
typedef struct _cl_event* cl_event;

enum {
  CL_SUCCESS = 0,
  CL_DEVICE_TYPE_GPU = 4,
  CL_PLATFORM_VERSION = 0x0901,
  CL_PLATFORM_NAME = 0x0902,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
  CL_DEVICE_MAX_CLOCK_FREQUENCY = 0x100C,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_IMAGE2D_MAX_WIDTH = 0x1011,
  CL_DEVICE_IMAGE2D_MAX_HEIGHT = 0x1012,
  CL_DEVICE_IMAGE_SUPPORT = 0x1016,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_PROFILING_TIMER_RESOLUTION = 0x1025,
  CL_DEVICE_QUEUE_PROPERTIES = 0x102A,
  CL_DEVICE_NAME = 0x102B,
  CL_DRIVER_VERSION = 0x102D,
  CL_DEVICE_VERSION = 0x102F,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_DEVICE_OPENCL_C_VERSION = 0x103D,
  CL_DEVICE_IMAGE_MAX_BUFFER_SIZE = 0x1040,
  CL_DEVICE_IMAGE_MAX_ARRAY_SIZE = 0x1041,
  CL_DEVICE_IMAGE_PITCH_ALIGNMENT = 0x104A,
  CL_KERNEL_FUNCTION_NAME = 0x1190,
  CL_PROFILING_COMMAND_QUEUED = 0x1280,  // then SUBMIT, START and END, one more each
};
#define CL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

typedef cl_int (*GetPlatformIDs)(cl_uint, cl_platform_id*, cl_uint*);
typedef cl_int (*GetPlatformInfo)(cl_platform_id, cl_uint, size_t, void*, size_t*);
typedef cl_int (*GetDeviceIDs)(cl_platform_id, cl_ulong, cl_uint, cl_device_id*, cl_uint*);
typedef cl_int (*GetDeviceInfo)(cl_device_id, cl_uint, size_t, void*, size_t*);
typedef void* (*GetExtensionFunctionAddressForPlatform)(cl_platform_id, const char*);
typedef cl_program (*CreateProgramWithSource)(cl_context, cl_uint, const char**, const size_t*, cl_int*);
typedef cl_program (*CreateProgramWithBinary)(cl_context, cl_uint, const cl_device_id*, const size_t*,
                                              const unsigned char**, cl_int*, cl_int*);
typedef cl_int (*EnqueueNDRangeKernel)(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*,
                                       const size_t*, cl_uint, const cl_event*, cl_event*);
/// clRetain... and clRelease... of any object, and clFinish.
typedef cl_int (*Retain)(void*);
/// clGet...Info of a kernel, and of an event's times.
typedef cl_int (*GetInfo)(void*, cl_uint, size_t, void*, size_t*);
/// cl_qcom_ml_ops: how many interfaces there are, and their versions. TVM's runtime takes the last (clml_runtime.cc).
typedef cl_int (*QueryMLInterfaceVersionsQCOM)(cl_int*, cl_int*, cl_uint, cl_uint*);

/// The OpenCL library of this process, opened if it is not yet; NULL without one.
void* opencl_library(void);
/// A function of that library; NULL if it has none of this name, or there is no library.
void* opencl_function(const char* name);
