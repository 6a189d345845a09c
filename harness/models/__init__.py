"""Where models come from: the zoo, and a person's own files, which are read with suspicion, cleaned up and cut here."""
