"""`tvm_rpc` in Python: the flags, the log and the manners of TVM's C++ RPC server, on TVM's real runtime.

It loads `libtvm_runtime` and the OpenCL device API with ctypes and calls them through `tvm_ffi`, without the `tvm`
Python package and its compiler library, so it is ready in a fraction of a second. Interface: apache/tvm, apps/cpp_rpc.
"""
