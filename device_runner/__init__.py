"""The device: reach it, keep it steady, run one artifact on it. Knows nothing of models."""
