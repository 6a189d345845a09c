"""TVM's RPC server: started on a device, waited for, and greeted."""

KEY_VARIABLE = "ADRENO_BENCH_RPC_KEY"
"""Environment: the key of a server, because others can read its command line."""
