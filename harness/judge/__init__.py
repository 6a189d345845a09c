"""Base against head: verdicts, the evidence they rest on, baselines, and what a rig can show."""
