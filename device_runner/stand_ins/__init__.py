"""What stands in for a phone: the virtual phone, this host, TVM's OpenCL runtime, the model of CLML, the RPC server."""
