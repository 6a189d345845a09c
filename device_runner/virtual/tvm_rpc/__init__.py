"""The phone's `tvm_rpc`: `device_runner.rpc_server.tvm_rpc` with the phone's faults."""
