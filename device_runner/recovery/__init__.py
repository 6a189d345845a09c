"""Bringing a lost device back: what is tried in which order, and when it is given up."""
