"""What this machine or a device has and lacks, and how to fix what is missing."""
