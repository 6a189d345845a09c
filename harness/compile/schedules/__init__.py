"""Schedules that were found by measuring: what one is, the file they are kept in, where they come from and go to."""
