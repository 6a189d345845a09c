"""`torch.export` programs as models: converted to ONNX by torch, and judged by torch itself."""

from harness.base.tool import ModelFormat, Tool

TOOL = Tool(
    "torch",
    model_formats={
        ".pt2": ModelFormat("harness.tools.torch.conversion:as_onnx", "harness.tools.torch.judge:TorchProgram")
    },
)
