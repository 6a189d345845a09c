#include "opencl.h"

#include <dlfcn.h>

// In the order in which TVM's own wrapper tries them (opencl_wrapper.cc), then what a Linux board without development
// files has. Without a folder, the loader's own search decides, as it does for TVM.
static const char* const kNames[] = {
    "libOpenCL.so",
    "/system/lib64/libOpenCL.so",
    "/system/vendor/lib64/libOpenCL.so",
    "/vendor/lib64/libOpenCL.so",
    "libOpenCL.so.1",
};

static void* any_of(int flags) {
  for (size_t i = 0; i < sizeof(kNames) / sizeof(*kNames); ++i) {
    void* library = dlopen(kNames[i], RTLD_NOW | RTLD_LOCAL | flags);
    if (library != NULL) return library;
  }
  return NULL;
}

void* opencl_library(void) {
  static void* library = NULL;
  if (library == NULL) library = any_of(RTLD_NOLOAD);  // the one that TVM's runtime has opened
  if (library == NULL) library = any_of(0);
  return library;
}

void* opencl_function(const char* name) {
  void* library = opencl_library();
  return library == NULL ? NULL : dlsym(library, name);
}
