"""From a model to a library: compiled in worker processes, and kept under the hash of all that went in."""
