"""One suite on several devices at once: who gets which case, and what becomes of a case whose device dies."""
