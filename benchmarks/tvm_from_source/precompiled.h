// What most files of TVM's compiler include. A header that a commit lacks is left out.
#pragma once
#if __has_include(<tvm/tirx/stmt_functor.h>)
#include <tvm/tirx/stmt_functor.h>
#include <tvm/tirx/transform.h>
#endif
#if __has_include(<tvm/arith/analyzer.h>)
#include <tvm/arith/analyzer.h>
#endif
#if __has_include(<tvm/relax/expr.h>)
#include <tvm/relax/expr.h>
#include <tvm/relax/op_attr_types.h>
#endif
#if __has_include(<tvm/ffi/reflection/registry.h>)
#include <tvm/ffi/reflection/registry.h>
#endif
