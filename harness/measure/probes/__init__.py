"""Measurements of a program whose answer is right: one file for each probe of the loop (`harness.measure.loop`)."""
