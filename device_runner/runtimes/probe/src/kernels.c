#include "functions.h"

#include <stdlib.h>
#include <string.h>

#include "hooks.h"
#include "opencl.h"

enum { MOST_LAUNCHES = 1 << 18, DIMENSIONS = 3 };

typedef struct {
  cl_kernel kernel;  // held until it is told
  cl_event event;    // likewise
  size_t global[DIMENSIONS], local[DIMENSIONS];
} Launch;

static Launch* launches;
static size_t kept, room, dropped;
static char lock;

static Retain retain_kernel, release_kernel, retain_event, release_event;
static GetInfo kernel_info, event_times;

static cl_int watching_launch(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*, const size_t*,
                              cl_uint, const cl_event*, cl_event*);

static Hook hook = {"clEnqueueNDRangeKernel", (void*)watching_launch, NULL, NULL};

static void begin(void) {
  while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {
  }
}

static void end(void) { __atomic_clear(&lock, __ATOMIC_RELEASE); }

static int make_room(void) {
  if (kept < room) return 1;
  if (room == MOST_LAUNCHES) return 0;
  const size_t more = room == 0 ? 1024 : 2 * room;
  Launch* moved = (Launch*)realloc(launches, more * sizeof(*launches));
  if (moved == NULL) return 0;
  launches = moved;
  room = more;
  return 1;
}

/// Keeps a launch whose event and kernel the caller holds for it; says whether there was room.
static int keep(const Launch* launch) {
  begin();
  const int fits = make_room();
  if (fits) {
    launches[kept++] = *launch;
  } else {
    ++dropped;
  }
  end();
  return fits;
}

static cl_int watching_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint waits, const cl_event* wait_list,
                              cl_event* event) {
  Launch launch = {kernel, NULL, {1, 1, 1}, {0, 0, 0}};
  const EnqueueNDRangeKernel real = (EnqueueNDRangeKernel)hook.real;
  const cl_int code = real(queue, kernel, dimensions, offset, global, local, waits, wait_list, &launch.event);
  if (code != CL_SUCCESS) return code;
  for (cl_uint i = 0; i < DIMENSIONS; ++i) {
    if (i < dimensions) launch.global[i] = global[i];
    if (local != NULL) launch.local[i] = i < dimensions ? local[i] : 1;
  }
  if (event != NULL) {
    *event = launch.event;
    retain_event(launch.event);
  }
  retain_kernel(kernel);
  if (!keep(&launch)) {
    release_event(launch.event);
    release_kernel(kernel);
  }
  return code;
}

static int find_functions(void) {
  retain_kernel = (Retain)opencl_function("clRetainKernel");
  release_kernel = (Retain)opencl_function("clReleaseKernel");
  retain_event = (Retain)opencl_function("clRetainEvent");
  release_event = (Retain)opencl_function("clReleaseEvent");
  kernel_info = (GetInfo)opencl_function("clGetKernelInfo");
  event_times = (GetInfo)opencl_function("clGetEventProfilingInfo");
  return retain_kernel && release_kernel && retain_event && release_event && kernel_info && event_times;
}

int watch_kernels(void) {
  static int places = 0;
  if (places == 0 && find_functions()) places = install(&hook, 1);
  return places;
}

static void tell(Text* json, const Launch* launch, const cl_ulong* times) {
  static const char* const names[] = {", \"queued\": ", ", \"submit\": ", ", \"start\": ", ", \"end\": "};
  char kernel[512] = "";
  if (kernel_info(launch->kernel, CL_KERNEL_FUNCTION_NAME, sizeof(kernel) - 1, kernel, NULL) != CL_SUCCESS) {
    kernel[0] = 0;  // a longer name is none that TVM gives
  }
  text_add(json, "{\"kernel\": ");
  text_add_quoted(json, kernel, strlen(kernel), 255);
  text_add(json, ", \"global\": ");
  text_add_numbers(json, launch->global, DIMENSIONS);
  text_add(json, ", \"local\": ");
  text_add_numbers(json, launch->local, DIMENSIONS);
  for (int i = 0; i < 4; ++i) {
    text_add(json, names[i]);
    text_add_number(json, times[i]);
  }
  text_add(json, "}");
}

static int times_of(cl_event event, cl_ulong* times) {
  for (cl_uint i = 0; i < 4; ++i) {
    const cl_uint which = CL_PROFILING_COMMAND_QUEUED + i;
    if (event_times(event, which, sizeof(times[i]), &times[i], NULL) != CL_SUCCESS) return 0;
  }
  return 1;
}

void tell_launches(Text* json) {
  begin();
  Launch* told = launches;
  const size_t count = kept, lost = dropped;
  launches = NULL;
  kept = room = dropped = 0;
  end();
  size_t timed = 0;
  text_add(json, "{\"launches\": [");
  for (size_t i = 0; i < count; ++i) {
    cl_ulong times[4];
    if (times_of(told[i].event, times)) {
      if (timed++ > 0) text_add(json, ", ");
      tell(json, &told[i], times);
    }
    release_event(told[i].event);
    release_kernel(told[i].kernel);
  }
  free(told);
  text_add(json, "], \"untimed\": ");
  text_add_number(json, count - timed);
  text_add(json, ", \"dropped\": ");
  text_add_number(json, lost);
  text_add(json, "}");
}
