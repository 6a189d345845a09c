"""The phone's `tvm_rpc`: `device_runner.stand_ins.tvm_rpc` with the phone's faults."""
