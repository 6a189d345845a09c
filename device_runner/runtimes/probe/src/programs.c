#include "functions.h"

#include "hooks.h"
#include "opencl.h"

static int64_t from_source, from_binary;

static cl_program counting_source(cl_context, cl_uint, const char**, const size_t*, cl_int*);
static cl_program counting_binary(cl_context, cl_uint, const cl_device_id*, const size_t*, const unsigned char**,
                                  cl_int*, cl_int*);

enum { SOURCE, BINARY, HOOKS };
static Hook hooks[HOOKS] = {
    {"clCreateProgramWithSource", (void*)counting_source, NULL, NULL},
    {"clCreateProgramWithBinary", (void*)counting_binary, NULL, NULL},
};

static cl_program counting_source(cl_context context, cl_uint count, const char** strings, const size_t* lengths,
                                  cl_int* code) {
  const CreateProgramWithSource real = (CreateProgramWithSource)hooks[SOURCE].real;
  const cl_program program = real(context, count, strings, lengths, code);
  if (program != NULL) __atomic_add_fetch(&from_source, 1, __ATOMIC_RELAXED);
  return program;
}

static cl_program counting_binary(cl_context context, cl_uint count, const cl_device_id* devices, const size_t* lengths,
                                  const unsigned char** binaries, cl_int* status, cl_int* code) {
  const CreateProgramWithBinary real = (CreateProgramWithBinary)hooks[BINARY].real;
  const cl_program program = real(context, count, devices, lengths, binaries, status, code);
  if (program != NULL) __atomic_add_fetch(&from_binary, 1, __ATOMIC_RELAXED);
  return program;
}

int count_programs(void) {
  static int places = 0;
  if (places == 0) places = install(hooks, HOOKS);
  return places;
}

int64_t programs_from_source(void) { return __atomic_load_n(&from_source, __ATOMIC_RELAXED); }

int64_t programs_from_binary(void) { return __atomic_load_n(&from_binary, __ATOMIC_RELAXED); }
