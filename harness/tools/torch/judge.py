"""A `torch.export` program, computed by torch itself. Run it in a worker: torch takes seconds and gigabytes."""

from __future__ import annotations

import io
from pathlib import Path

from device_runner.device import Array
from harness.compile.oracle.judge import NoAnswer, Refusal, Values, one_line
from harness.tools.torch.conversion import plain_archive


class TorchProgram:
    """One program in torch, on one thread."""

    def __init__(self, file: Path, *, trust: bool) -> None:
        """Load the file as it is with `trust`, else a copy in which nothing can be executed. Raises NoAnswer."""
        try:
            import torch
        except ImportError as error:
            raise NoAnswer(f"torch is not installed ({error})") from error
        self.name = f"torch {torch.__version__}"
        torch.set_num_threads(1)
        try:
            self._program = torch.export.load(file if trust else io.BytesIO(plain_archive(file)))
            self._module = self._program.module()
        except Exception as error:  # it raises errors of every kind
            raise NoAnswer(f"torch: {one_line(error)}") from error

    def ask(self, inputs: Values) -> list[Array]:
        """Run it on tensors in the order of its own inputs. Raises NoAnswer, Refusal."""
        import torch
        from torch.utils import _pytree as trees

        shape = self._program.call_spec.in_spec
        if shape is None or shape.num_leaves != len(inputs):
            raise NoAnswer("torch: the program takes something beside tensors")
        args, kwargs = trees.tree_unflatten([torch.from_numpy(array.copy()) for array in inputs.values()], shape)
        try:
            with torch.no_grad():
                answer = self._module(*args, **kwargs)
        except NotImplementedError as error:
            raise NoAnswer(f"torch: {one_line(error)}") from error
        except Exception as error:  # it raises errors of every kind
            raise Refusal(f"torch: {one_line(error)}") from error
        return [leaf.numpy() for leaf in trees.tree_leaves(answer) if isinstance(leaf, torch.Tensor)]
