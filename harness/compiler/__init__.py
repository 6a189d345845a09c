"""What we know of TVM: its releases, its list of passes, and where its interfaces differ."""
