// The probe's functions as a TVM module.
#include "module.h"

#include "functions.h"

static int return_int(int64_t value, TVMFFIAny* result) {
  *result = an_int(value);
  return 0;
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
