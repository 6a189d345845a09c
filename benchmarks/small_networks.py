"""Networks of libraries whose networks run on phones, made small, with random weights.

    python -m benchmarks.exported_networks FOLDER monai kornia torchaudio speechbrain diffusers

The tables are in `small_images`, `small_sounds` and `small_others`, which name all packages. Nothing is downloaded.
`transformers_heads` and `transformers_speech` are what transformers' `AutoModel` does not make: detection,
segmentation, depth, vocoders, state spaces.
"""

from __future__ import annotations

import pkgutil
from typing import Any, NamedTuple

FLOATS = 2
"""Results of real numbers that a network returns."""


class Make(NamedTuple):
    """A call: of a class, or of a method of what another call makes."""

    of: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def __call__(self) -> Any:
        """Import and call it, and the calls among its arguments first."""
        options = {name: made(each) for name, each in self.options.items()}
        return pkgutil.resolve_name(self.of)(*map(made, self.arguments), **options)


def make(of: str, *arguments: Any, **options: Any) -> Make:
    """Return a call to make later, when the library is there."""
    return Make(of, arguments, options)


def made(value: Any) -> Any:
    """Return what a call makes, in lists as well; anything else as it is."""
    if isinstance(value, Make):
        return value()
    if isinstance(value, list):
        return [made(each) for each in value]
    return value


class Network(NamedTuple):
    """A network: what makes it, its inputs and the method that runs it."""

    make: Make
    inputs: str
    """Shapes, as 1,3,32,32. NAME=SHAPE is passed by name; SHAPE<N has whole numbers below N; SHAPE*, some of 0 to 1."""
    method: str = "forward"


def net(inputs: str, of: str, *arguments: Any, method: str = "forward", **options: Any) -> Network:
    """Return a network of these inputs."""
    return Network(make(of, *arguments, **options), inputs, method)


def build(network: Network) -> tuple[Any, tuple[Any, ...]]:
    """Return a network that returns its first results of real numbers, and its inputs."""
    import torch

    model = network.make().float().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # as they come, most results would hardly depend on the input
            if parameter.ndim > 1 and parameter.numel():
                parameter.copy_(torch.randn_like(parameter) * parameter[0].numel() ** -0.5)
    names, shapes = zip(*(text.rpartition("=")[::2] for text in network.inputs.split()), strict=True)

    class Results(torch.nn.Module):  # type: ignore[misc]
        """The network with its results as a tuple."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: Any) -> tuple[Any, ...]:
            unnamed = [tensor for name, tensor in zip(names, tensors, strict=True) if not name]
            named = {name: tensor for name, tensor in zip(names, tensors, strict=True) if name}
            results = getattr(self.model, network.method)(*unnamed, **named)
            return tuple(each for each in flat(results) if each.is_floating_point())[:FLOATS]

    return Results().eval(), tuple(random_input(shape) for shape in shapes)


def of_series(model: Any) -> Any:
    """Let a network of neuralforecast read a series without gaps, and nothing beside it."""
    import torch

    whole, beside = model.forward, ("futr_exog", "hist_exog", "stat_exog")
    model.forward = lambda series: whole(
        {"insample_y": series, "insample_mask": torch.ones_like(series), **dict.fromkeys(beside)}
    )
    return model


def flat(results: Any) -> list[Any]:
    """Return the tensors of results, however they are nested."""
    if hasattr(results, "is_floating_point"):
        return [results]
    values = results.values() if hasattr(results, "values") else results if isinstance(results, list | tuple) else ()
    return [tensor for each in values for tensor in flat(each)]


def random_input(text: str) -> Any:
    """Return a random tensor of a shape."""
    import torch

    shape, _, below = text.rstrip("*").partition("<")
    sizes = [int(size) for size in shape.split(",")]
    if below:
        return torch.randint(int(below), sizes)
    return torch.rand(sizes) if text.endswith("*") else torch.randn(sizes)
