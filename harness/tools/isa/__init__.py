"""Adreno machine code without a phone, by Mesa's open compiler (docs/explanation/isa.md)."""
