"""What people read of a history: one exporter for each file."""
