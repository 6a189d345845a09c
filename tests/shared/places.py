"""Where the project and its test data lie, wherever in the tree a test is."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
SHARED = ROOT / "tests" / "shared"
