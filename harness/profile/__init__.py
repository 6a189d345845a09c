"""Where the time of an inference goes: its kernels by time, what each had to do, and what another case does there."""
