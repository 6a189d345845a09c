"""What runs on a device beside the artifacts: TVM's OpenCL runtime, the model of CLML, TVM's build for phones."""
