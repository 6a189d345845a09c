"""Models: the zoo, and users' own files, which are read with suspicion, cleaned up and cut here."""
