#include "gpus.h"

#include <dlfcn.h>
#include <stddef.h>

enum { SM_CLOCK = 1, GPU_TEMPERATURE = 0, THERMAL_POLICY = 1 };

typedef void* Gpu;
typedef struct {
  unsigned long long reference_ns, violation_ns;
} Violation;

static void* library;

static void* function(const char* name) { return dlsym(library, name); }

static void add_line(Text* text, const char* word, uint64_t value) {
  text_add(text, word);
  text_add(text, " ");
  text_add_number(text, value);
  text_add(text, "\n");
}

static void describe(Gpu gpu, Text* text) {
  int (*name_of)(Gpu, char*, unsigned) = function("nvmlDeviceGetName");
  int (*clock_of)(Gpu, int, unsigned*) = function("nvmlDeviceGetClockInfo");
  int (*heat_of)(Gpu, int, unsigned*) = function("nvmlDeviceGetTemperature");
  int (*power_of)(Gpu, unsigned*) = function("nvmlDeviceGetPowerUsage");
  int (*reasons_of)(Gpu, unsigned long long*) = function("nvmlDeviceGetCurrentClocksThrottleReasons");
  int (*violation_of)(Gpu, int, Violation*) = function("nvmlDeviceGetViolationStatus");
  char name[96];
  unsigned value = 0;
  unsigned long long reasons = 0;
  Violation violation = {0, 0};
  if (name_of == NULL || name_of(gpu, name, sizeof(name)) != 0) return;
  text_add(text, "gpu ");
  text_add(text, name);
  text_add(text, "\n");
  if (clock_of && clock_of(gpu, SM_CLOCK, &value) == 0) add_line(text, "clock_mhz", value);
  if (heat_of && heat_of(gpu, GPU_TEMPERATURE, &value) == 0) add_line(text, "gpu_c", value);
  if (power_of && power_of(gpu, &value) == 0) add_line(text, "power_mw", value);
  if (reasons_of && reasons_of(gpu, &reasons) == 0) add_line(text, "reasons", reasons);
  if (violation_of && violation_of(gpu, THERMAL_POLICY, &violation) == 0) add_line(text, "slowed_ns", violation.violation_ns);
}

void describe_gpus(Text* text) {
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == NULL) return;
  int (*start)(void) = function("nvmlInit_v2");
  int (*count_of)(unsigned*) = function("nvmlDeviceGetCount_v2");
  int (*gpu_at)(unsigned, Gpu*) = function("nvmlDeviceGetHandleByIndex_v2");
  unsigned count = 0;
  if (!start || !count_of || !gpu_at || start() != 0 || count_of(&count) != 0) return;
  for (unsigned i = 0; i < count; ++i) {
    Gpu gpu = NULL;
    if (gpu_at(i, &gpu) == 0) describe(gpu, text);
  }
}
