"""What this machine and a device have and lack, each lack with its fix."""
