"""The part of a record that a test of a language model has besides the fields of every case (`harness.tools.llm`)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LlmPart(BaseModel):
    """One test of one library. Its `wall_ms` are those of a step: a prompt of `tokens`, or one token."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    model: str
    """Name of the network, without format and test."""
    format: str
    """Number format of its weights: `float32`, `q4f16_1`."""
    pipeline: str
    """Which passes compiled it: `mlc`, TVM's `default`, or those of `mlc-llm` itself."""
    test: str
    """As llama-bench names it: `pp512`, `tg@d512`."""
    options: tuple[str, ...] = ()
    """Options of `llm run` that named the network and its weights; none of those for a case of a suite."""
    parameters: int
    """Number of weights."""
    weights_bytes: int | None = None
    launches: int | None = None
    """Kernels that a step launches; None where they cannot be seen."""
    tokens: int
    """Tokens of a timed step."""
    depth: int
    """Tokens in the cache before the first timed step."""
    chunk: int | None = None
    """Most tokens of a step; a longer prompt takes several steps."""
    pinned: bool = False
    """Whether the suite, or the baseline of a gate, says `chunk`; else it follows from the trial."""
    trial_tokens: int | None = None
    """Tokens of the largest step of the trial."""
    trial_ms: float | None = None
    """Time of that step."""
    tokens_per_s: float | None = None
    """From the location of `wall_ms`; None without times."""
    first_token_ms: float | None = None
    """Time from an empty cache to the first token's logits, of a prompt alone."""
    error: float | None = None
    """Largest error of the logits, relative to their peak, over all positions and steps."""
    rounding: float | None = None
    """Error of a position's logits, as a multiple of what rounding does there, in the mean of a step's positions; the
    largest of all steps."""
    divergence: float | None = None
    """Mean KL divergence from the truth's distributions of the next token, in nats; the largest of all steps."""
    invariants: dict[str, float] = {}
    """How far apart answers lie that have to be the same, relative to their peak, by what was compared."""
