#include "functions.h"

#include <time.h>

#include "values.h"

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int run_entry(TVMFFIObjectHandle invoke, const char* entry) {
  TVMFFIAny arg = a_text(entry), result = none(kTVMFFINone);
  const int code = TVMFFIFunctionCall(invoke, &arg, 1, &result);
  if (code == 0) release(result);
  return code;
}

static int wait_for_device(TVMFFIObjectHandle sync) {
  TVMFFIAny args[2] = {a_device(kDLOpenCL), an_int(0)}, result = none(kTVMFFINone);  // its usual queue
  return TVMFFIFunctionCall(sync, args, 2, &result);
}

/// Runs `size` inferences and waits after each `every`; the time of one in ns, or 0 if something failed.
static uint64_t time_of_one(TVMFFIObjectHandle invoke, TVMFFIObjectHandle sync, const char* entry, int64_t size,
                            int64_t every) {
  const uint64_t began = now_ns();
  for (int64_t done = 1; done <= size; ++done) {
    if (run_entry(invoke, entry) != 0) return 0;
    if (done % every == 0 && wait_for_device(sync) != 0) return 0;
  }
  return (now_ns() - began) / (uint64_t)size + 1;
}

int time_batches(TVMFFIObjectHandle invoke, const char* entry, int64_t size, int64_t repeat, Text* json) {
  static const char global[] = "runtime.Device_StreamSync";
  const TVMFFIByteArray name = {global, sizeof(global) - 1};
  uint64_t batched[MOST_BATCHES], synced[MOST_BATCHES];
  TVMFFIObjectHandle sync = NULL;
  if (TVMFFIFunctionGetGlobal(&name, &sync) != 0) return -1;
  int code = sync == NULL || run_entry(invoke, entry) != 0 || wait_for_device(sync) != 0 ? -1 : 0;
  for (int64_t index = 0; index < repeat && code == 0; ++index) {
    batched[index] = time_of_one(invoke, sync, entry, size, size);
    synced[index] = batched[index] ? time_of_one(invoke, sync, entry, size, 1) : 0;
    code = synced[index] ? 0 : -1;
  }
  if (sync != NULL) TVMFFIObjectDecRef(sync);
  if (code != 0) return code;
  text_add(json, "{\"batched_ns\": ");
  text_add_numbers(json, batched, (size_t)repeat);
  text_add(json, ", \"synced_ns\": ");
  text_add_numbers(json, synced, (size_t)repeat);
  text_add(json, "}");
  return 0;
}
