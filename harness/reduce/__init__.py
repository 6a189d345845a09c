"""Shrink a wrong or broken network to the smallest that fails alike, and write a folder that shows it."""
