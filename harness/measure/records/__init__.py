"""Records: one line for each case that ran, their index, and where they are read from."""
