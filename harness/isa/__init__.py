"""Real Adreno machine code without a phone: Mesa's open compiler, run on the kernels of an artifact (docs/isa.md)."""
