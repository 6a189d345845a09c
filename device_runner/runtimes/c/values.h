// Values as tvm-ffi's C interface takes and returns them.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <tvm/ffi/c_api.h>

/// One of this type that holds nothing yet.
TVMFFIAny none(int32_t kind);
TVMFFIAny an_int(int64_t value);
TVMFFIAny a_text(const char* value);
TVMFFIAny a_pointer(void* value);
TVMFFIAny some_bytes(TVMFFIByteArray* value);
TVMFFIAny a_tensor(DLTensor* value);
TVMFFIAny a_device(int kind);
void release(TVMFFIAny value);

/// What a text or bytes value holds; its data is NULL for another.
TVMFFIByteArray content_of(const TVMFFIAny* value);
