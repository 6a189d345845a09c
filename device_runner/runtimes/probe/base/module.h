// What functions of a TVM module in C are made of: tvm-ffi finds them by the names of the symbols (library_module.cc). Texts
// are returned as Bytes, because RPC ends a String at its first zero byte and a host may refuse one that is not UTF-8.
#pragma once

#include "text.h"
#include "values.h"

/// One of them, by its name in the module.
#define FUNCTION(name)                                                                     \
  __attribute__((visibility("default"))) int __tvm_ffi_##name(                             \
      __attribute__((unused)) void* self, __attribute__((unused)) const TVMFFIAny* args,   \
      __attribute__((unused)) int32_t count, TVMFFIAny* result)

static inline int refuse(const char* message) {
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", message);
  return -1;
}

static inline int return_bytes(const char* data, size_t size, TVMFFIAny* result) {
  const TVMFFIByteArray bytes = {data, size};
  return TVMFFIBytesFromByteArray(&bytes, result);
}

static inline int return_text(Text* text, TVMFFIAny* result) {
  const int code = text->failed ? refuse("there is no memory left") : return_bytes(text->data, text->size, result);
  text_free(text);
  return code;
}

static inline const char* text_of(const TVMFFIAny* value) {
  if (value->type_index == kTVMFFIRawStr) return value->v_c_str;
  return content_of(value).data;
}
