"""The CLML path: parts of a network go to OpenCL ML, the library inside Qualcomm's driver; the rest stays on OpenCL."""
