"""Defects of TVM: probe them, report them upstream, and find the revision that brought one."""
