"""Devices of this host, offered to other hosts."""
