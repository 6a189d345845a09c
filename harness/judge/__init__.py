"""Base against head: verdicts and their evidence, baselines, and noise profiles."""
