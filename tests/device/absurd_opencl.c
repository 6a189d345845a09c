// An OpenCL library of one device that says what FAKE_OPENCL asks for: as much as is needed to be asked who it is.
//
// adreno: a Snapdragon's words. wordy: a driver version of 200 characters, as real ones have. zero: no limits. long: 100 kB of extensions. latin: a name that is no UTF-8.
// FAKE_NAME, FAKE_VERSION, FAKE_DRIVER and FAKE_EXTENSIONS say other words.
// crash: dies of the first question. fragile: dies of a question that only the probe has. none: has no platform.
#include <CL/cl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int is(const char* what) {
  const char* wanted = getenv("FAKE_OPENCL");
  return wanted != NULL && strcmp(wanted, what) == 0;
}

static cl_int give(const void* value, size_t size, size_t room, void* out, size_t* told) {
  if (told != NULL) *told = size;
  if (out != NULL && room < size) return CL_INVALID_VALUE;
  if (out != NULL) memcpy(out, value, size);
  return CL_SUCCESS;
}

static const char* driver_version(void) {
  static char version[201];
  if (!is("wordy")) return "OpenCL 3.0 QUALCOMM build: 0762.10 Compiler E031.45.02.16";
  const char* part = "OpenCL 2.0 QUALCOMM build: commit #a1b2c3d changeid #I0123456789 Date: 01/02/21 Local Branch: ";
  for (size_t i = 0; i < 200; ++i) version[i] = part[i % strlen(part)];
  return version;
}

/// What stands in a variable of the environment, where one is set.
static const char* said(const char* variable, const char* otherwise) {
  const char* value = getenv(variable);
  return value == NULL ? otherwise : value;
}

static cl_int text(const char* value, size_t room, void* out, size_t* told) {
  return give(value, strlen(value) + 1, room, out, told);
}

static const char* extensions(void) {
  static char many[100001];
  if (!is("long")) return "cl_khr_fp16 cl_qcom_ml_ops cl_qcom_perf_hint ";
  for (size_t i = 0; i + 1 < sizeof(many); ++i) many[i] = i % 10 == 9 ? ' ' : (char)('a' + (i / 10 + i % 10 * 7) % 26);
  return many;
}

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* out, cl_uint* told) {
  if (is("crash")) raise(SIGSEGV);
  if (told != NULL) *told = is("none") ? 0 : 1;
  if (is("none")) return -1001;
  if (out != NULL && room > 0) out[0] = (cl_platform_id)1;
  return CL_SUCCESS;
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t room, void* out, size_t* told) {
  (void)platform;
  const char* const version = said("FAKE_PLATFORM_VERSION", "OpenCL 3.0 QUALCOMM build: 0762.10");
  return text(what == CL_PLATFORM_NAME ? "QUALCOMM Snapdragon(TM)" : version, room, out, told);
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id* out, cl_uint* told) {
  (void)platform, (void)type;
  if (told != NULL) *told = 1;
  if (out != NULL && room > 0) out[0] = (cl_device_id)2;
  return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void* out, size_t* told) {
  const size_t limit = is("zero") ? 0 : 16384, layers = is("zero") ? 0 : 2048;
  const cl_device_type type = CL_DEVICE_TYPE_GPU;
  const cl_uint pitch = 64;
  const cl_ulong number = is("zero") ? 0 : 32768;
  (void)device;
  switch (what) {
    case CL_DEVICE_TYPE: return give(&type, sizeof(type), room, out, told);
    case CL_DEVICE_NAME: return text(is("latin") ? "Adreno\xae \"740\"\n" : said("FAKE_NAME", "QUALCOMM Adreno(TM)"), room, out, told);
    case CL_DEVICE_VERSION: return text(said("FAKE_VERSION", "OpenCL 3.0 Adreno(TM) 740"), room, out, told);
    case CL_DRIVER_VERSION: return text(said("FAKE_DRIVER", driver_version()), room, out, told);
    case CL_DEVICE_EXTENSIONS: return text(said("FAKE_EXTENSIONS", extensions()), room, out, told);
    case CL_DEVICE_OPENCL_C_VERSION: return text("OpenCL C 3.0", room, out, told);
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT: return give(&limit, sizeof(limit), room, out, told);
    case CL_DEVICE_IMAGE_MAX_ARRAY_SIZE: return give(&layers, sizeof(layers), room, out, told);
    case CL_DEVICE_IMAGE_PITCH_ALIGNMENT: return give(&pitch, sizeof(pitch), room, out, told);
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION:
      if (is("fragile")) raise(SIGSEGV);
      return CL_INVALID_VALUE;
    default: return give(&number, sizeof(number), room, out, told);
  }
}

cl_int clQueryMLInterfaceVersionsQCOM(cl_int* major, cl_int* minor, cl_uint count, cl_uint* told) {
  static const cl_int versions[][2] = {{1, 0}, {2, 1}, {4, 1}};
  if (told != NULL) *told = 3;
  for (cl_uint i = 0; major != NULL && i < count; ++i) major[i] = versions[i][0], minor[i] = versions[i][1];
  return CL_SUCCESS;
}

cl_context clCreateContext(const cl_context_properties* properties, cl_uint count, const cl_device_id* devices,
                           void (*notify)(const char*, const void*, size_t, void*), void* data, cl_int* code) {
  (void)properties, (void)count, (void)devices, (void)notify, (void)data;
  if (code != NULL) *code = CL_SUCCESS;
  return (cl_context)3;
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                      cl_int* code) {
  (void)context, (void)device, (void)properties;
  if (code != NULL) *code = CL_SUCCESS;
  return (cl_command_queue)4;
}
