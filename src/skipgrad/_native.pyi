"""The native core of skipgrad: kernels, sampling and text."""

def instruction_sets() -> list[str]:
    """The instruction sets that this machine can run, slowest first."""
