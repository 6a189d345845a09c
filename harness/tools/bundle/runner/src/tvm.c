#include "tvm.h"

#include <string.h>

#include "quote.h"
#include "tell.h"

/// Kind, message and backtrace, as Python shows them.
static _Noreturn void tell_raised(void) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (error == NULL) tell_broken("TVM failed without a message", "an error");
  const TVMFFIByteArray* parts = (const TVMFFIByteArray*)((const char*)error + sizeof(TVMFFIObject));
  Text text = {0};
  for (int part = 0; part < 3; ++part) {
    if (part) text_add(&text, part == 1 ? ": " : "\n");
    text_append(&text, parts[part].data, parts[part].size);
  }
  tell_error(text.data, text.size);
}

TVMFFIAny call(TVMFFIAny function, const TVMFFIAny* args, int32_t count) {
  TVMFFIAny result = none(kTVMFFINone);
  if (TVMFFIFunctionCall(function.v_obj, (TVMFFIAny*)args, count, &result) != 0) tell_raised();
  return result;
}

TVMFFIAny try_call(TVMFFIAny function, const TVMFFIAny* args, int32_t count) {
  TVMFFIAny result = none(kTVMFFINone);
  if (TVMFFIFunctionCall(function.v_obj, (TVMFFIAny*)args, count, &result) == 0) return result;
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (error != NULL) TVMFFIObjectDecRef(error);
  return none(kTVMFFINone);
}

TVMFFIAny find_global(const char* name) {
  const TVMFFIByteArray named = {name, strlen(name)};
  TVMFFIObjectHandle handle = NULL;
  if (TVMFFIFunctionGetGlobal(&named, &handle) != 0) tell_raised();
  TVMFFIAny function = none(handle == NULL ? kTVMFFINone : kTVMFFIFunction);
  function.v_obj = handle;
  return function;
}

TVMFFIAny global(const char* name) {
  const TVMFFIAny function = find_global(name);
  if (function.type_index == kTVMFFINone) tell_broken("TVM's runtime has no function of this name", name);
  return function;
}

TVMFFIAny member(TVMFFIAny module, const char* name) {
  TVMFFIAny args[3] = {module, a_text(name), none(kTVMFFIBool)}, getter = global("ffi.ModuleGetFunction");
  args[2].v_int64 = 1;  // or of a module that it imports
  TVMFFIAny found = call(getter, args, 3);
  release(getter);
  if (found.type_index != kTVMFFIFunction) tell_broken("the module has no function of this name", name);
  return found;
}

static TVMFFIAny call_once(TVMFFIAny function, const TVMFFIAny* args, int32_t count) {
  const TVMFFIAny result = call(function, args, count);
  release(function);
  return result;
}

TVMFFIAny call_global(const char* name, const TVMFFIAny* args, int32_t count) {
  return call_once(global(name), args, count);
}

TVMFFIAny call_member(TVMFFIAny module, const char* name, const TVMFFIAny* args, int32_t count) {
  return call_once(member(module, name), args, count);
}

const DLTensor* tensor_of(const TVMFFIAny* value) {
  return (const DLTensor*)((const char*)value->v_obj + sizeof(TVMFFIObject));
}
