"""The fifty tests that take longest, a table in Markdown, of what `make durations` stored in `tests/durations.json`.

python -m benchmarks.longest_tests > docs/data/longest-tests.md

"""

from __future__ import annotations

import json
from pathlib import Path

from harness.tools.shared.markdown import unpadded_markdown

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = ROOT / "tests" / "durations.json"
MOST = 50
PAGE = """# The fifty longest tests

Seconds with the set-up that a test waits for, beside up to three other workers: {part:,.0f} s in all. Made by

```
make durations
python -m benchmarks.longest_tests > docs/data/longest-tests.md
```

{table}
"""


def page() -> str:
    """Return the page that `docs/data/longest-tests.md` should be."""
    durations: dict[str, float] = json.loads(DURATIONS.read_text("utf-8"))
    longest = sorted(durations.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST]
    rows = [(f"{seconds:.1f}", test.replace("|", "\\|")) for test, seconds in longest]
    part = sum(seconds for _, seconds in longest)
    table = unpadded_markdown(rows, ("s", "test"))
    return PAGE.format(part=part, table=table)


if __name__ == "__main__":
    print(page(), end="")
