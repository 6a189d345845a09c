// The peak rates of an OpenCL device, measured now: one function of a TVM module.
#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "opencl.h"

// What this needs of OpenCL and the probe does not. Names and values: the Khronos registry, api/CL/cl.h (OpenCL 3.0).
typedef struct _cl_mem* cl_mem;

typedef struct {
  cl_uint image_channel_order, image_channel_data_type;
} cl_image_format;

typedef struct {
  cl_uint image_type;
  size_t image_width, image_height, image_depth, image_array_size, image_row_pitch, image_slice_pitch;
  cl_uint num_mip_levels, num_samples;
  cl_mem buffer;
} cl_image_desc;

enum {
  CL_FLOAT = 0x10DE,
  CL_RGBA = 0x10B5,
  CL_MEM_OBJECT_IMAGE2D = 0x10F1,
  CL_MEM_READ_WRITE = 1,
  CL_MEM_READ_ONLY = 4,
  CL_QUEUE_PROFILING_ENABLE = 2,
};

typedef cl_context (*CreateContext)(const intptr_t*, cl_uint, const cl_device_id*, void*, void*, cl_int*);
typedef cl_command_queue (*CreateCommandQueue)(cl_context, cl_device_id, cl_ulong, cl_int*);
typedef cl_mem (*CreateBuffer)(cl_context, cl_ulong, size_t, void*, cl_int*);
typedef cl_mem (*CreateImage)(cl_context, cl_ulong, const cl_image_format*, const cl_image_desc*, void*, cl_int*);
typedef cl_int (*BuildProgram)(cl_program, cl_uint, const cl_device_id*, const char*, void*, void*);
typedef cl_kernel (*CreateKernel)(cl_program, const char*, cl_int*);
typedef cl_int (*SetKernelArg)(cl_kernel, cl_uint, size_t, const void*);

// Each thread does the same `rounds` times, so that a slow device and a fast one can both be kept busy for a while. Reads
// and writes sweep over all of a tensor that no cache holds. What is computed is written, but for a condition that nothing
// fulfils and no compiler can know.
static const char kSource[] =
    "__kernel void copy(__global const float4* from, __global float4* to, int rounds) {\n"
    "  int at = get_global_id(0);\n"
    "  for (int r = 0; r < rounds; ++r) { to[at] = from[at]; at = (at + THREADS) & (VECTORS - 1); }\n"
    "}\n"
    "__kernel void arithmetic(__global const float4* from, __global float4* to, int rounds) {\n"
    "  const int i = get_global_id(0);\n"
    "  const NUMBER4 m = (NUMBER4)((NUMBER)(i & 7) * (NUMBER)0.1f), k = m + (NUMBER)1;\n"
    "  NUMBER4 a = k, b = k + (NUMBER)1, c = k + (NUMBER)2, d = k + (NUMBER)3;\n"
    "  for (int r = 0; r < rounds; ++r) { a = mad(a, m, k); b = mad(b, m, k); c = mad(c, m, k); d = mad(d, m, k); }\n"
    "  const NUMBER4 sum = a + b + c + d;\n"
    "  if (sum.x == (NUMBER)12345.0f) to[i] = convert_float4(sum);\n"
    "}\n";

static const char kImageSource[] =
    "__constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
    "__kernel void texels(__read_only image2d_t from, __global float4* to, int rounds) {\n"
    "  const int i = get_global_id(0);\n"
    "  float4 sum = (float4)(0);\n"
    "  int at = i;\n"
    "  for (int r = 0; r < rounds; ++r) {\n"
    "    sum += read_imagef(from, nearest, (int2)(at & (SIDE - 1), at / SIDE));\n"
    "    at = (at + THREADS) & (VECTORS - 1);\n"
    "  }\n"
    "  if (sum.x == 12345.0f) to[i] = sum;\n"
    "}\n";

enum { SIDE = 2048, VECTORS = SIDE * SIDE, THREADS = 1 << 18 };
enum { MOST_ROUNDS = 1 << 20, LONG_ENOUGH_NS = 4000000, REPEATS = 5 };

#define SIZES "-DSIDE=2048 -DVECTORS=4194304 -DTHREADS=262144"
#define NUMBERS(type) SIZES " -DNUMBER=" type " -DNUMBER4=" type "4"

typedef struct {
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  cl_mem from, to, image;
} Bench;

#define CALL(name, type) ((type)opencl_function(#name))

static void drop(const char* function, void* object) {
  const Retain release = (Retain)opencl_function(function);
  if (object != NULL && release != NULL) release(object);
}

static cl_device_id device_of(const char* name, const char* driver) {
  const GetPlatformIDs platforms = CALL(clGetPlatformIDs, GetPlatformIDs);
  const GetDeviceIDs devices = CALL(clGetDeviceIDs, GetDeviceIDs);
  const GetDeviceInfo info = CALL(clGetDeviceInfo, GetDeviceInfo);
  cl_platform_id platform[16];
  cl_device_id device[16];
  cl_uint count = 0, found = 0;
  if (!platforms || !devices || !info || platforms(16, platform, &count) != CL_SUCCESS) return NULL;
  for (cl_uint p = 0; p < count && p < 16; ++p) {
    if (devices(platform[p], CL_DEVICE_TYPE_ALL, 16, device, &found) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < found && d < 16; ++d) {
      char its_name[1024] = "", its_driver[1024] = "";
      info(device[d], CL_DEVICE_NAME, sizeof(its_name) - 1, its_name, NULL);
      info(device[d], CL_DRIVER_VERSION, sizeof(its_driver) - 1, its_driver, NULL);
      const int is_driver = driver[0] == '\0' || strcmp(its_driver, driver) == 0;  // empty: TVM could not read it
      if (strcmp(its_name, name) == 0 && is_driver) return device[d];
    }
  }
  return NULL;
}

static int open_bench(Bench* bench) {
  const CreateContext context = CALL(clCreateContext, CreateContext);
  const CreateCommandQueue queue = CALL(clCreateCommandQueue, CreateCommandQueue);
  const CreateBuffer buffer = CALL(clCreateBuffer, CreateBuffer);
  const CreateImage image = CALL(clCreateImage, CreateImage);
  const size_t bytes = VECTORS * 4 * sizeof(float);
  if (!context || !queue || !buffer) return 0;
  bench->context = context(NULL, 1, &bench->device, NULL, NULL, NULL);
  if (bench->context == NULL) return 0;
  bench->queue = queue(bench->context, bench->device, CL_QUEUE_PROFILING_ENABLE, NULL);
  bench->from = buffer(bench->context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
  bench->to = buffer(bench->context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
  if (image != NULL) {
    const cl_image_format format = {CL_RGBA, CL_FLOAT};
    const cl_image_desc description = {CL_MEM_OBJECT_IMAGE2D, SIDE, SIDE, 0, 0, 0, 0, 0, 0, NULL};
    bench->image = image(bench->context, CL_MEM_READ_ONLY, &format, &description, NULL, NULL);
  }
  return bench->queue != NULL && bench->from != NULL && bench->to != NULL;
}

static void close_bench(Bench* bench) {
  drop("clReleaseMemObject", bench->image);
  drop("clReleaseMemObject", bench->to);
  drop("clReleaseMemObject", bench->from);
  drop("clReleaseCommandQueue", bench->queue);
  drop("clReleaseContext", bench->context);
}

/// How long one launch ran, in ns; 0 if it failed.
static cl_ulong once(const Bench* bench, cl_kernel kernel, cl_int rounds) {
  const SetKernelArg set = CALL(clSetKernelArg, SetKernelArg);
  const EnqueueNDRangeKernel launch = CALL(clEnqueueNDRangeKernel, EnqueueNDRangeKernel);
  const GetInfo times = CALL(clGetEventProfilingInfo, GetInfo);
  const Retain finish = CALL(clFinish, Retain);
  const size_t threads = THREADS;
  cl_event event = NULL;
  cl_ulong start = 0, end = 0;
  if (set(kernel, 2, sizeof(rounds), &rounds) != CL_SUCCESS) return 0;
  if (launch(bench->queue, kernel, 1, NULL, &threads, NULL, 0, NULL, &event) != CL_SUCCESS) return 0;
  if (finish(bench->queue) == CL_SUCCESS) {
    times(event, CL_PROFILING_COMMAND_QUEUED + 2, sizeof(start), &start, NULL);
    times(event, CL_PROFILING_COMMAND_QUEUED + 3, sizeof(end), &end, NULL);
  }
  drop("clReleaseEvent", event);
  return end > start ? end - start : 0;
}

/// Rounds per second, of all threads together: the best of some launches that take long enough to be timed; 0 if the
/// kernel does not run.
static double rate(const Bench* bench, cl_kernel kernel) {
  cl_int rounds = 1;
  cl_ulong took = once(bench, kernel, rounds), best = 0;
  for (; took > 0 && took < LONG_ENOUGH_NS && rounds < MOST_ROUNDS; took = once(bench, kernel, rounds)) rounds *= 2;
  if (took == 0) return 0;
  for (int i = 0; i < REPEATS; ++i) {
    took = once(bench, kernel, rounds);
    if (took > 0 && (best == 0 || took < best)) best = took;
  }
  return best == 0 ? 0 : (double)rounds * THREADS * 1e9 / (double)best;
}

static double rate_of(const Bench* bench, const char* source, const char* options, const char* name, cl_mem from) {
  const CreateProgramWithSource create = CALL(clCreateProgramWithSource, CreateProgramWithSource);
  const BuildProgram build = CALL(clBuildProgram, BuildProgram);
  const CreateKernel make = CALL(clCreateKernel, CreateKernel);
  const SetKernelArg set = CALL(clSetKernelArg, SetKernelArg);
  double found = 0;
  if (!create || !build || !make || !set || from == NULL) return 0;
  cl_program program = create(bench->context, 1, &source, NULL, NULL);
  if (program == NULL) return 0;
  const cl_int built = build(program, 1, &bench->device, options, NULL, NULL);
  cl_kernel kernel = built == CL_SUCCESS ? make(program, name, NULL) : NULL;
  if (kernel != NULL && set(kernel, 0, sizeof(from), &from) == CL_SUCCESS &&
      set(kernel, 1, sizeof(bench->to), &bench->to) == CL_SUCCESS) {
    found = rate(bench, kernel);
  }
  drop("clReleaseKernel", kernel);
  drop("clReleaseProgram", program);
  return found;
}

static void tell_rate(Text* json, const char* key, double value) {
  text_add(json, key);
  if (value > 0) {
    text_add_number(json, (uint64_t)value);
  } else {
    text_add(json, "null");
  }
}

static void measure_peaks(const char* name, const char* driver, Text* json) {
  static const char single[] = NUMBERS("float");
  static const char half[] = NUMBERS("half") " -DHALF";
  static const char with_half[] = "#ifdef HALF\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#endif\n";
  const double vector_bytes = 4 * sizeof(float), operations = 4 /* chains */ * 4 /* lanes */ * 2;
  Bench bench = {device_of(name, driver), NULL, NULL, NULL, NULL, NULL};
  if (bench.device == NULL || !open_bench(&bench)) {
    close_bench(&bench);
    text_add(json, "{\"problem\": \"the device could not be opened again\"}");
    return;
  }
  char source[sizeof(kSource) + sizeof(with_half)];
  strcpy(source, with_half);
  strcat(source, kSource);
  tell_rate(json, "{\"copy_bytes_s\": ", 2 * vector_bytes * rate_of(&bench, source, single, "copy", bench.from));
  tell_rate(json, ", \"image_bytes_s\": ",
            vector_bytes * rate_of(&bench, kImageSource, SIZES, "texels", bench.image));
  tell_rate(json, ", \"float32_flop_s\": ", operations * rate_of(&bench, source, single, "arithmetic", bench.from));
  tell_rate(json, ", \"float16_flop_s\": ", operations * rate_of(&bench, source, half, "arithmetic", bench.from));
  text_add(json, ", \"problem\": \"\"}");
  close_bench(&bench);
}

/// (name, driver version) -> Bytes: one JSON object of what was measured on the first device with this name and driver
/// version, by profiled kernels: `copy_bytes_s` (read and written, buffer to buffer), `image_bytes_s` (read from an RGBA
/// image of 32-bit numbers), `float32_flop_s` and `float16_flop_s` (multiply and add, two operations each), and
/// `problem`. Null is what the device cannot do; `problem` is empty unless nothing could be measured.
FUNCTION(peaks) {
  Text json = {0};
  const char* name = count == 2 ? text_of(&args[0]) : NULL;
  const char* driver = count == 2 ? text_of(&args[1]) : NULL;
  if (name == NULL || driver == NULL) return refuse("peaks takes a device's name and its driver's version");
  measure_peaks(name, driver, &json);
  return return_text(&json, result);
}
