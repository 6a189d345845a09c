"""What stands in for a phone: the virtual phone, TVM's OpenCL runtime, the model of CLML, the RPC server."""
