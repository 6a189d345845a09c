#include "program.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quote.h"
#include "tell.h"
#include "tvm.h"

void load_runtime(const Case* packed) {
  // A machine's own OpenCL loader goes before the one in the bundle, whose name would hide it.
  if (packed->loader != NULL && dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL) == NULL) {
    if (dlopen(packed->loader, RTLD_NOW | RTLD_GLOBAL) == NULL) tell_broken("OpenCL's loader does not load", dlerror());
  }
  for (size_t i = 0; i < packed->library_count; ++i) {
    if (dlopen(packed->libraries[i], RTLD_NOW | RTLD_GLOBAL) == NULL) tell_broken("TVM's runtime does not load", dlerror());
  }
}

TVMFFIAny load_module(const char* path) {
  const TVMFFIAny arg = a_text(path);
  return call_global("ffi.ModuleLoadFromFile", &arg, 1);
}

TVMFFIAny ask(TVMFFIAny probe, const char* function) { return call_member(probe, function, NULL, 0); }

void tell_answer(const char* name, TVMFFIAny answer) {
  const TVMFFIByteArray json = content_of(&answer);
  tell_text(name, json.data, json.size);
}

static void wait_for_device(void) {
  const TVMFFIAny args[2] = {a_device(kDLOpenCL), an_int(0)};
  call_global("runtime.Device_StreamSync", args, 2);
}

double load_program(Program* program, const Artifact* artifact, const Protocol* rules) {
  memset(program, 0, sizeof(*program));
  program->artifact = artifact;
  program->rules = rules;
  const double began = now_s();
  program->module = load_module(artifact->library);
  program->machine = call_member(program->module, "vm_load_executable", NULL, 0);
  TVMFFIAny args[3 * (MOST_TENSORS + 1)];
  int32_t count = 0;
  for (int device = 0; device <= artifact->vdevices && device < MOST_TENSORS; ++device) {
    args[count++] = an_int(device < artifact->vdevices ? kDLOpenCL : kDLCPU);
    args[count++] = an_int(0);
    args[count++] = an_int(POOLED);
  }
  call_member(program->machine, "vm_initialization", args, count);
  wait_for_device();
  program->invoke = member(program->machine, "invoke_stateful");
  return 1e3 * (now_s() - began);
}

void save_binaries(Program* program, const char* file) {
  const TVMFFIAny made = call_member(program->module, "opencl.GetPreCompiledPrograms", NULL, 0);
  const TVMFFIByteArray content = content_of(&made);
  if (content.size == 0) tell_broken("TVM's runtime has no program binaries", file);
  if (save_file(file, content.data, content.size) != 0) tell_broken("program binaries cannot be kept", file);
  release(made);
}

void use_binaries(Program* program, const char* file) {
  const Text content = read_file(file, 0);
  if (content.data == NULL) tell_broken("program binaries cannot be read", file);
  TVMFFIByteArray bytes = {content.data, content.size};
  const TVMFFIAny arg = some_bytes(&bytes);
  release(call_member(program->module, "opencl.SetPreCompiledPrograms", &arg, 1));
}

const char* content_of_file(const Tensor* tensor, size_t count) {
  const Text content = read_file(tensor->file, 0);
  if (content.data == NULL || content.size != count * bytes_of(tensor->shape, tensor->ndim, tensor->dtype)) {
    tell_broken("an input cannot be read", tensor->file);
  }
  return content.data;
}

void give_inputs(Program* program, const Tensor* inputs, const char* const* contents, size_t count) {
  TVMFFIAny args[MOST_TENSORS + 1];
  DLTensor tensors[MOST_TENSORS];
  for (size_t i = 0; i < count; ++i) {
    tensors[i] = (DLTensor){.data = (void*)contents[i],
                            .device = {kDLCPU, 0},
                            .ndim = inputs[i].ndim,
                            .dtype = inputs[i].dtype,
                            .shape = (int64_t*)inputs[i].shape};
    args[i + 1] = a_tensor(&tensors[i]);
  }
  const char* const entries[2] = {program->artifact->entry, program->artifact->host_entry};
  for (int entry = 0; entry < 2; ++entry) {
    args[0] = a_text(entries[entry]);
    call_member(program->machine, "set_input", args, (int32_t)count + 1);
  }
}

double run(Program* program) {
  const TVMFFIAny entry = a_text(program->artifact->entry);
  const double began = now_s();
  release(call(program->invoke, &entry, 1));
  wait_for_device();
  return 1e3 * (now_s() - began);
}

static double value_at(const void* data, DLDataType dtype, size_t index) {
  if (dtype.bits == 64) return ((const double*)data)[index];
  if (dtype.bits == 32) return (double)((const float*)data)[index];
  const uint16_t half = ((const uint16_t*)data)[index];  // IEEE 754: a sign, 5 bits of exponent, 10 of fraction
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(1024 + fraction, exponent - 25);
  return half >> 15 ? -size : size;
}

static int near(const void* got, size_t size, const Tensor* answer) {
  Text want = read_file(answer->file, 0);
  int right = want.data != NULL && want.size == size;
  if (right && answer->dtype.code != kDLFloat) {
    right = memcmp(got, want.data, size) == 0;
  } else if (right) {
    const size_t count = size / (answer->dtype.bits / 8);
    for (size_t i = 0; i < count && right; ++i) {
      const double error = value_at(got, answer->dtype, i) - value_at(want.data, answer->dtype, i);
      right = fabs(error) <= answer->tolerance;  // also false of what is no number
    }
  }
  text_free(&want);
  return right;
}

static void add_output(Text* json, const DLTensor* tensor, const char* data, size_t size) {
  text_add(json, json->size ? ", {\"dtype\": [" : "{\"dtype\": [");
  text_add_number(json, tensor->dtype.code);
  text_add(json, ", ");
  text_add_number(json, tensor->dtype.bits);
  text_add(json, "], \"shape\": ");
  text_add_numbers(json, (const uint64_t*)tensor->shape, (size_t)tensor->ndim);
  text_add(json, ", \"hex\": \"");
  add_hex(json, data, size);
  text_add(json, "\"}");
}

typedef struct {
  Text json;
  size_t count;
  const Tensor* wanted;
  size_t wanted_count;
  int right;
} Answer;

static void take_tensor(const TVMFFIAny* value, Answer* into) {
  const DLTensor* tensor = tensor_of(value);
  const size_t size = bytes_of(tensor->shape, tensor->ndim, tensor->dtype);
  char* data = (char*)malloc(size + 1);
  if (data == NULL) tell_broken("there is no memory", "for an output");
  const TVMFFIAny args[3] = {*value, a_pointer(data), an_int((int64_t)size)};
  call_global("runtime.TVMTensorCopyToBytes", args, 3);
  const Tensor* answer = into->count < into->wanted_count ? &into->wanted[into->count] : NULL;
  into->right &= answer != NULL && memcmp(&answer->dtype, &tensor->dtype, sizeof(DLDataType)) == 0 &&
                 near(data, size, answer);
  into->count += 1;
  add_output(&into->json, tensor, data, size);
  free(data);
}

/// The tensors of an answer, whatever tuples they are in; `args` has the entry and the place so far.
static void take_outputs(Program* program, TVMFFIAny* args, int32_t count, Answer* into) {
  const int64_t arity = call_member(program->machine, "get_output_arity", args, count).v_int64;
  if (arity == -1) {
    const TVMFFIAny value = call_member(program->machine, "get_output", args, count);
    take_tensor(&value, into);
    release(value);
  }
  for (int64_t index = 0; index < arity && count < MOST_AXES; ++index) {
    args[count] = an_int(index);
    take_outputs(program, args, count + 1, into);
  }
}

int tell_outputs(Program* program, const char* name, const Tensor* answers, size_t answer_count) {
  TVMFFIAny args[MOST_AXES + 1] = {a_text(program->artifact->entry)};
  Answer answer = {.wanted = answers, .wanted_count = answer_count, .right = 1};
  take_outputs(program, args, 1, &answer);
  Text all = {0};
  text_add(&all, "[");
  text_append(&all, answer.json.data ? answer.json.data : "", answer.json.size);
  text_add(&all, "]");
  tell_json(name, all.data, all.size);
  text_free(&all);
  text_free(&answer.json);
  return answer.right && answer.count == answer_count;
}

void sample(Program* program, int by_device, size_t count, Numbers* into) {
  const TVMFFIAny args[12] = {program->machine,
                              a_text("invoke_stateful"),
                              an_int(by_device ? kDLOpenCL : kDLCPU),
                              an_int(0),               // the first device
                              an_int(1),               // an inference for each sample
                              an_int((int64_t)count),  // samples
                              an_int(0),
                              an_int(100),
                              an_int(0),
                              an_int(1),
                              an_int(0),
                              a_text("")};
  const TVMFFIAny evaluator = call_global("runtime.RPCTimeEvaluator", args, 12);
  const TVMFFIAny entry = a_text(by_device ? program->artifact->entry : program->artifact->host_entry);
  const TVMFFIAny took = call(evaluator, &entry, 1);
  const TVMFFIByteArray times = content_of(&took);
  if (times.size != count * sizeof(double)) tell_broken("TVM's evaluator", "took another number of samples");
  for (size_t i = 0; i < count; ++i) {
    double seconds;
    memcpy(&seconds, times.data + i * sizeof(double), sizeof(double));
    add(into, 1e3 * seconds);
  }
  release(took);
  release(evaluator);
}
