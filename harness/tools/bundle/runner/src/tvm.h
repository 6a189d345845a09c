// TVM's runtime through tvm-ffi's C interface: functions by name, called with plain values.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <tvm/ffi/c_api.h>

#include "values.h"

enum { POOLED = 2 };                                      // TVM's number of the VM's usual allocator (vm.py)
enum { EXIST = 0, DEVICE_NAME = 5, DRIVER_VERSION = 12 };  // of attributes (device_api.h, DeviceAttrKind)

/// Every function below that fails tells why (`tell_error`) and ends the process: a turn is over with its first error.
TVMFFIAny global(const char* name);
/// The same, of type `kTVMFFINone` if there is none.
TVMFFIAny find_global(const char* name);
TVMFFIAny member(TVMFFIAny module, const char* name);
TVMFFIAny call(TVMFFIAny function, const TVMFFIAny* args, int32_t count);
/// Calls a function by its name, once.
TVMFFIAny call_global(const char* name, const TVMFFIAny* args, int32_t count);
TVMFFIAny call_member(TVMFFIAny module, const char* name, const TVMFFIAny* args, int32_t count);
/// The same, of type `kTVMFFINone` if the function raises an error, which is dropped.
TVMFFIAny try_call(TVMFFIAny function, const TVMFFIAny* args, int32_t count);

/// The tensor in an object of TVM's.
const DLTensor* tensor_of(const TVMFFIAny* value);
