"""The time of an inference by kernel: what each kernel had to do, and what another case does there."""
