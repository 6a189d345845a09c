"""What goes to CLML and what stays, as a record keeps it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subgraph:
    """One offloaded part, compiled once. All numbers are of one call of it."""

    symbol: str
    calls: int
    """How often one inference calls it: TVM shares equal parts."""
    composites: dict[str, int]
    """How many of each; one composite is one CLML operator."""
    operators: int
    """Relax operators in them."""
    macs: int
    """Multiply-accumulates of convolutions."""
    boundary_bytes: int
    """Size of what goes in and comes out."""
    untunable: int
    """Convolutions without activation and batch norm, which TVM's runtime creates without the tuning cache."""
    may_lose: bool
    """Whether it does so little on so much data that OpenCL may be faster (`MACS_PER_BOUNDARY_BYTE`)."""
    half: bool = True  # of older records, which do not say whether it has tensors in half precision


@dataclass(frozen=True)
class RemainingOperators:
    """Operators of one kind that stay on OpenCL for one reason."""

    operator: str
    count: int
    macs: int
    why: str


@dataclass(frozen=True)
class OffloadReport:
    """The whole network, per inference."""

    subgraphs: tuple[Subgraph, ...]
    outside: tuple[RemainingOperators, ...]
    operators: int
    operators_offloaded: int
    macs: int
    macs_offloaded: int
    boundary_bytes: int
    """Bytes that cross between OpenCL and CLML, in both directions."""

    operator_share: float
    """Offloaded operators, 0 to 1."""
    mac_share: float
    """Offloaded multiply-accumulates, 0 to 1."""
