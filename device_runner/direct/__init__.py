"""This machine's OpenCL device without TVM's Python packages: sessions are processes that are spoken to through pipes.

For a machine on which nothing may be installed. A session's process loads TVM's runtime libraries and calls them
through tvm-ffi's C interface (`ffi`), so any Python from 3.10 on will do, and numpy is all that it needs.
"""
