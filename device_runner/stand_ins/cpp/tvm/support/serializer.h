// See io.h beside this file: tvm/runtime/tensor.h includes this header, which the wheels do not ship.
#ifndef TVM_SUPPORT_SERIALIZER_H_
#define TVM_SUPPORT_SERIALIZER_H_

#include <tvm/ffi/endian.h>
#include <tvm/support/io.h>

#endif
