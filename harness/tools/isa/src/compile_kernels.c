// Builds OpenCL programs and their kernels for the first device there is, and says what came of each. Executes nothing.
//
//     compile_kernels MARK FILE...
//
// Everything goes to the error stream, where Mesa's compiler prints its code. Lines of ours begin with MARK, a word that
// no source can know, so that nothing which a source makes the compiler print is taken for one of them.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define MOST_KERNELS 64
#define MEMORY_BYTES (4ul << 30)

static const char* mark;

static char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  char* text = NULL;
  size_t room = 0;
  if (file && getdelim(&text, &room, '\0', file) < 0) {  // to the end: no source has a zero
    free(text);
    text = NULL;
  }
  if (file) fclose(file);
  return text;
}

static void say_build_log(cl_program program, cl_device_id device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  char* log = calloc(size + 1, 1);
  if (log && clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log, NULL) == CL_SUCCESS)
    fprintf(stderr, "%s log\n%s\n%s end of log\n", mark, log, mark);
  free(log);
}

static void say_kernels(cl_program program, cl_device_id device) {
  cl_kernel kernels[MOST_KERNELS];
  cl_uint count = 0;
  cl_int code = clCreateKernelsInProgram(program, MOST_KERNELS, kernels, &count);
  if (code != CL_SUCCESS) {
    fprintf(stderr, "%s no kernels %d\n", mark, code);
    return;
  }
  for (cl_uint i = 0; i < count; i++) {
    char name[512] = "";
    cl_ulong private_bytes = 0, local_bytes = 0;
    size_t group = 0;
    clGetKernelInfo(kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, NULL);
    clGetKernelWorkGroupInfo(kernels[i], device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof private_bytes, &private_bytes, NULL);
    clGetKernelWorkGroupInfo(kernels[i], device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes, NULL);
    clGetKernelWorkGroupInfo(kernels[i], device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group, &group, NULL);
    fprintf(stderr, "%s kernel %s private %lu local %lu group %lu\n", mark, name, (unsigned long)private_bytes,
            (unsigned long)local_bytes, (unsigned long)group);
    clReleaseKernel(kernels[i]);
  }
}

static void build(cl_context context, cl_device_id device, const char* path) {
  char* text = read_file(path);
  if (!text) {
    fprintf(stderr, "%s unreadable\n", mark);
    return;
  }
  const char* source = text;
  cl_int code;
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
  if (code == CL_SUCCESS) code = clBuildProgram(program, 1, &device, NULL, NULL, NULL);
  fprintf(stderr, "%s built %d\n", mark, code);
  if (program && code != CL_SUCCESS) say_build_log(program, device);
  if (code == CL_SUCCESS) say_kernels(program, device);
  if (program) clReleaseProgram(program);
  free(text);
}

int main(int argc, char** argv) {
  if (argc < 2) return 0; // the sandbox was tried, and works
  const struct rlimit memory = {MEMORY_BYTES, MEMORY_BYTES};
  setrlimit(RLIMIT_AS, &memory);
  mark = argv[1];
  cl_platform_id platform;
  cl_device_id device;
  cl_int code = clGetPlatformIDs(1, &platform, NULL);
  if (code == CL_SUCCESS) code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
  cl_context context = code == CL_SUCCESS ? clCreateContext(NULL, 1, &device, NULL, NULL, &code) : NULL;
  if (!context) {
    fprintf(stderr, "%s no device %d\n", mark, code);
    return 1;
  }
  char driver[256] = "";
  clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
  fprintf(stderr, "%s driver %s\n", mark, driver);
  for (int i = 2; i < argc; i++) {
    fprintf(stderr, "%s begin %d\n", mark, i - 2);
    build(context, device, argv[i]);
    fprintf(stderr, "%s end %d\n", mark, i - 2);
  }
  clReleaseContext(context);
  return 0;
}
