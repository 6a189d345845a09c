"""Where the time of an inference goes, by operator, and why two cases or builds differ."""
