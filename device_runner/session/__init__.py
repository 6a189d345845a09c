"""A server process with one set of toggles and one RPC connection to it."""
