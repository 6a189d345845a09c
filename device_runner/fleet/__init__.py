"""Several devices: which ones a person means, and how those of other hosts are reached."""
