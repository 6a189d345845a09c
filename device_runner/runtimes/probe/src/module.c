// The probe's functions as a TVM module: tvm-ffi finds them by the names of the symbols (library_module.cc). Texts are
// returned as Bytes, because RPC ends a String at its first zero byte and a host may refuse one that is not UTF-8.
#include "functions.h"
#include "values.h"

/// One of them, by its name in the module.
#define FUNCTION(name)                                                                     \
  __attribute__((visibility("default"))) int __tvm_ffi_##name(                             \
      __attribute__((unused)) void* self, __attribute__((unused)) const TVMFFIAny* args,   \
      __attribute__((unused)) int32_t count, TVMFFIAny* result)

static int refuse(const char* message) {
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", message);
  return -1;
}

static int return_bytes(const char* data, size_t size, TVMFFIAny* result) {
  const TVMFFIByteArray bytes = {data, size};
  return TVMFFIBytesFromByteArray(&bytes, result);
}

static int return_int(int64_t value, TVMFFIAny* result) {
  *result = an_int(value);
  return 0;
}

static int return_text(Text* text, TVMFFIAny* result) {
  const int code = text->failed ? refuse("the probe ran out of memory") : return_bytes(text->data, text->size, result);
  text_free(text);
  return code;
}

/// () -> Bytes: what `describe` says.
FUNCTION(describe) {
  Text json = {0};
  describe(&json);
  return return_text(&json, result);
}

/// () -> Bytes: what `tell_memory` says.
FUNCTION(memory) {
  Text json = {0};
  tell_memory(&json);
  return return_text(&json, result);
}

/// () -> int: begins to count programs; in how many places.
FUNCTION(count_programs) {
  return return_int(count_programs(), result);
}

/// () -> Bytes: how many programs were made since.
FUNCTION(programs) {
  Text json = {0};
  text_add(&json, "{\"programs_from_source\": ");
  text_add_number(&json, (uint64_t)programs_from_source());
  text_add(&json, ", \"programs_from_binary\": ");
  text_add_number(&json, (uint64_t)programs_from_binary());
  text_add(&json, "}");
  return return_text(&json, result);
}

/// () -> int: begins to keep launches of kernels; in how many places.
FUNCTION(watch_kernels) {
  return return_int(watch_kernels(), result);
}

/// () -> Bytes: what `tell_launches` says.
FUNCTION(launches) {
  Text json = {0};
  tell_launches(&json);
  return return_text(&json, result);
}

static const char* text_of(const TVMFFIAny* value) {
  if (value->type_index == kTVMFFIRawStr) return value->v_c_str;
  return content_of(value).data;
}

/// (name, driver version) -> Bytes: what `measure_peaks` says.
FUNCTION(peaks) {
  Text json = {0};
  const char* name = count == 2 ? text_of(&args[0]) : NULL;
  const char* driver = count == 2 ? text_of(&args[1]) : NULL;
  if (name == NULL || driver == NULL) return refuse("peaks takes a device's name and its driver's version");
  measure_peaks(name, driver, &json);
  return return_text(&json, result);
}

/// The function of a module, or of one that it imports, as an owned reference.
static int function_of(const TVMFFIAny* module, const char* name, TVMFFIAny* function) {
  static const char global[] = "ffi.ModuleGetFunction";
  const TVMFFIByteArray name_of_getter = {global, sizeof(global) - 1};
  TVMFFIObjectHandle getter = NULL;
  if (TVMFFIFunctionGetGlobal(&name_of_getter, &getter) != 0) return -1;
  if (getter == NULL) return refuse("this TVM has no ffi.ModuleGetFunction");
  TVMFFIAny args[3] = {*module, a_text(name), none(kTVMFFIBool)};
  args[2].v_int64 = 1;
  const int code = TVMFFIFunctionCall(getter, args, 3, function);
  TVMFFIObjectDecRef(getter);
  return code;
}

/// (Module) -> Bytes: a module's OpenCL programs as the device compiled them, which TVM's runtime returns as a String.
FUNCTION(program_binaries) {
  static const char name[] = "opencl.GetPreCompiledPrograms";
  TVMFFIAny function = none(kTVMFFINone), binaries = none(kTVMFFINone);
  if (count != 1 || args[0].type_index != kTVMFFIModule) return refuse("program_binaries takes one module");
  if (function_of(&args[0], name, &function) != 0) return -1;
  if (function.type_index != kTVMFFIFunction) return refuse("the module has no OpenCL programs");
  int code = TVMFFIFunctionCall(function.v_obj, NULL, 0, &binaries);
  release(function);
  if (code != 0) return code;
  const TVMFFIByteArray content = content_of(&binaries);
  if (content.data != NULL) {
    code = return_bytes(content.data, content.size, result);
  } else {
    code = refuse("opencl.GetPreCompiledPrograms returned neither a String nor Bytes");
  }
  release(binaries);
  return code;
}

/// (virtual machine, entry, size, repeat) -> Bytes: what `time_batches` says.
FUNCTION(batches) {
  TVMFFIAny invoke = none(kTVMFFINone);
  Text json = {0};
  const char* entry = count == 4 ? text_of(&args[1]) : NULL;
  if (entry == NULL || args[0].type_index < kTVMFFIStaticObjectBegin || args[2].type_index != kTVMFFIInt ||
      args[3].type_index != kTVMFFIInt || args[2].v_int64 < 1 || args[3].v_int64 < 1 ||
      args[3].v_int64 > MOST_BATCHES) {
    return refuse("batches takes a virtual machine, the name of an entry, a size, and how many to time");
  }
  if (function_of(&args[0], "invoke_stateful", &invoke) != 0) return -1;
  if (invoke.type_index != kTVMFFIFunction) return refuse("the module is no virtual machine");
  const int code = time_batches(invoke.v_obj, entry, args[2].v_int64, args[3].v_int64, &json);
  release(invoke);
  if (code == 0) return return_text(&json, result);
  text_free(&json);
  return code;
}
