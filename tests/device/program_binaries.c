// A TVM module with program binaries as TVM's own runtime returns them: a String, with zero bytes in it.
#include <tvm/ffi/c_api.h>

int binaries(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result)
    __asm__("__tvm_ffi_opencl.GetPreCompiledPrograms");

__attribute__((visibility("default"))) int binaries(void* self, const TVMFFIAny* args, int32_t count,
                                                    TVMFFIAny* result) {
  static const char content[] = "\2\0\0\0\0\0\0\0\0\377 two programs";
  const TVMFFIByteArray bytes = {content, sizeof(content) - 1};
  (void)self, (void)args, (void)count;
  return TVMFFIStringFromByteArray(&bytes, result);
}
