"""TVM's RPC server: started on a device, waited for, and greeted."""
