#include "session.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "quote.h"
#include "reference.h"
#include "tell.h"
#include "timing.h"
#include "tvm.h"

const char* const SESSION_NAMES[SESSIONS] = {"who", "peaks", "tune", "reference", "turns", "turn"};

char* kept_at(const char* work, const char* name) {
  if (name == NULL) return NULL;
  const size_t size = strlen(work) + strlen(name) + 2;
  char* path = (char*)malloc(size);
  if (path == NULL) tell_broken("there is no memory", name);
  snprintf(path, size, "%s/%s", work, name);
  return path;
}

static void ask_names(TVMFFIAny names[2]) {
  const TVMFFIAny attribute = global("runtime.GetDeviceAttr");
  TVMFFIAny args[3] = {an_int(kDLOpenCL), an_int(0), an_int(EXIST)};
  if (call(attribute, args, 3).v_int64 == 0) tell_broken("TVM's runtime finds no OpenCL device", "is there a driver?");
  args[2] = an_int(DEVICE_NAME);
  names[0] = call(attribute, args, 3);
  args[2] = an_int(DRIVER_VERSION);
  names[1] = try_call(attribute, args, 3);  // TVM cannot read one of more than 126 characters; the probe can
}

static void tell_who(const Case* packed) {
  TVMFFIAny names[2];
  tell_doing("opening OpenCL");
  ask_names(names);
  tell_answer("name", names[0]);
  tell_answer("driver_version", names[1]);
  const char* (*libc_version)(void) = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  if (libc_version != NULL) tell_text("libc", libc_version(), strlen(libc_version()));
  if (packed->probe == NULL) return;
  tell_doing("asking the probe");
  tell_answer("describe", ask(load_module(packed->probe), "describe"));
}

static void tell_peaks(const Case* packed) {
  TVMFFIAny names[2];
  if (packed->peaks == NULL) return;
  ask_names(names);
  tell_doing("measuring the device's peak rates");
  tell_answer("peaks", call_member(load_module(packed->peaks), "peaks", names, 2));
}

static void give_files(Program* program, const Tensor* inputs, size_t count) {
  const char* contents[MOST_TENSORS];
  for (size_t i = 0; i < count; ++i) contents[i] = content_of_file(&inputs[i], 1);
  give_inputs(program, inputs, contents, count);
}

static void give_case(Program* program, const Case* packed) { give_files(program, packed->inputs, packed->input_count); }

/// What CLML wrote while it tuned goes to its place, and to the host, which tells by it whether a run used it.
static void keep_tuning(const char* written, const char* place) {
  const Text content = read_file(written, 0);
  if (content.data == NULL) tell_broken("CLML wrote no tuning", written);
  tell_bytes("tuning", content.data, content.size);
  if (rename(written, place) != 0) tell_broken("CLML's tuning cannot be kept", place);
}

static void tune(const Case* packed, const char* binaries, const char* written, const char* cache) {
  Program program;
  tell_doing("loading");
  load_program(&program, &packed->artifact, &packed->protocol);
  give_case(&program, packed);
  tell_doing("running");
  run(&program);
  tell_doing("keeping what was tuned");
  if (binaries != NULL) save_binaries(&program, binaries);
  if (cache != NULL) keep_tuning(written, cache);
}

/// Labelled inputs, whose answers say how often the network is right.
static void run_labelled(Program* program, const Tensor* labelled, size_t count) {
  const size_t size = bytes_of(labelled->shape, labelled->ndim, labelled->dtype);
  const char* content = content_of_file(labelled, count);
  char name[32];
  for (size_t i = 0; i < count; ++i) {
    const char* const part = content + i * size;
    tell_doing("running labelled inputs");
    give_inputs(program, labelled, &part, 1);
    run(program);
    snprintf(name, sizeof(name), "labelled%zu", i);
    tell_outputs(program, name, NULL, 0);
  }
}

/// What the program answers when it has been timed: to other inputs, which overwrite what is in its buffers, and to its own.
static void run_again(Program* program, const Case* packed) {
  tell_doing("running it again");
  if (packed->other_count > 0) {
    give_files(program, packed->others, packed->other_count);
    run(program);
    tell_outputs(program, "other", NULL, 0);
  }
  give_case(program, packed);
  run(program);
  tell_outputs(program, "again", NULL, 0);
}

static void run_turn(const Case* packed, const char* work) {
  Program program;
  TVMFFIAny probe = {0};
  if (packed->probe != NULL) {
    tell_doing("loading the probe");
    probe = load_module(packed->probe);
    release(ask(probe, "count_programs"));
  }
  tell_doing("loading");
  tell_number("init_ms", load_program(&program, &packed->artifact, &packed->protocol));
  if (packed->binaries != NULL) use_binaries(&program, kept_at(work, packed->binaries));
  give_case(&program, packed);
  tell_doing("running");
  tell_number("first_run_ms", run(&program));
  if (packed->probe != NULL) tell_answer("memory", ask(probe, "memory"));
  const int right = tell_outputs(&program, "outputs", packed->answers, packed->answer_count);
  tell_bool("near", right);
  if (right && packed->labelled_count > 0) {
    run_labelled(&program, &packed->labelled, (size_t)packed->labelled_count);
    give_case(&program, packed);
  }
  if (packed->probe != NULL) tell_answer("programs", ask(probe, "programs"));
  const TVMFFIAny clml = find_global("adreno_bench.clml_info");  // of our model of CLML
  if (clml.type_index != kTVMFFINone) tell_answer("clml_info", call(clml, NULL, 0));
  if (!right) return;  // a wrong answer gets no time
  const double each_ms = measure(&program);
  if (packed->probe != NULL) time_batches(&program, probe, each_ms);
  run_again(&program, packed);
  const char *binaries = kept_at(work, packed->reference_binaries), *turns = kept_at(work, packed->reference_turns);
  if (turns != NULL && access(turns, R_OK) == 0) play_reference(packed, binaries, turns);  // last: its failure costs nothing
}

_Noreturn void hold_session(Session session, const Case* packed, const char* work) {
  char* const cache = kept_at(work, packed->tuning_cache);
  char* const written = cache && session == TUNE ? kept_at(work, "tuning.new") : NULL;
  if (written != NULL) unlink(written);  // CLML only adds to its file
  if (written != NULL) setenv("CLML_IS_TUNING_RUN", "1", 1);
  if (cache != NULL) setenv("CLML_TUNING_CACHE", written ? written : cache, 1);
  tell_doing("loading TVM's runtime");
  load_runtime(packed);
  if (session == WHO) tell_who(packed);
  if (session == PEAKS) tell_peaks(packed);
  if (session == TUNE) tune(packed, kept_at(work, packed->binaries), written, cache);
  if (session == COMPILE_REFERENCE) compile_reference(packed, kept_at(work, packed->reference_binaries));
  if (session == FIND_TURNS) {
    find_turns(packed, kept_at(work, packed->reference_binaries), kept_at(work, packed->reference_turns));
  }
  if (session == TURN) run_turn(packed, work);
  tell_bool("done", 1);
  _exit(0);  // a driver's own clean-up has been seen to hang
}
