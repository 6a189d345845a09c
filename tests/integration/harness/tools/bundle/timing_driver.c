// The runner's timing protocol with made-up times: what it does on a device, it asks of whoever loaded this library.
#define now_s now_of_this_machine_s
#include "numbers.c"
#undef now_s
double now_s(void);

#include <string.h>

#include "case.c"
#include "quote.c"
#include "text.c"
#include "timing.c"

typedef struct {
  double (*now_s)(void);
  void (*sample)(int by_device, size_t count, double* into);
  void (*batches)(int64_t size, int64_t repeat);
  void (*told)(const char* name, size_t count, const double* values);
} World;

static World world;

void time_a_case(const char* file, const World* given) {
  world = *given;
  Case packed = {0};
  read_case(file, &packed);
  packed.artifact.entry = "main";
  Program program = {.artifact = &packed.artifact, .rules = &packed.protocol};
  const TVMFFIAny probe = an_int(0);
  const double each_ms = measure(&program);
  time_batches(&program, probe, each_ms);
}

double now_s(void) { return world.now_s(); }

void sample(Program* program, int by_device, size_t count, Numbers* into) {
  (void)program;
  double* took = (double*)malloc(count * sizeof(double));
  world.sample(by_device, count, took);
  for (size_t i = 0; i < count; ++i) add(into, took[i]);
  free(took);
}

TVMFFIAny call_member(TVMFFIAny module, const char* name, const TVMFFIAny* args, int32_t count) {
  (void)name, (void)count;  // the probe's `batches` is the only function that is called with arguments
  world.batches(args[2].v_int64, args[3].v_int64);
  return module;
}

void tell_numbers(const char* name, const double* values, size_t count) { world.told(name, count, values); }
void tell_number(const char* name, double value) { world.told(name, 1, &value); }
void tell_bool(const char* name, int value) { tell_number(name, value); }
_Noreturn void tell_broken(const char* what, const char* which) { abort(), (void)what, (void)which; }

TVMFFIAny an_int(int64_t value) { return (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = value}; }
TVMFFIAny a_text(const char* value) { return (TVMFFIAny){.type_index = kTVMFFIRawStr, .v_c_str = value}; }
TVMFFIAny ask(TVMFFIAny probe, const char* function) { return (void)probe, (void)function, an_int(0); }
void release(TVMFFIAny value) { (void)value; }
void tell_doing(const char* doing) { (void)doing; }
void tell_answer(const char* name, TVMFFIAny answer) { (void)name, (void)answer; }
