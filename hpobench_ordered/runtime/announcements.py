"""What a process tells its user besides results; light to import, unlike compiled code."""

announces_compiling = False
"""Whether compiling is logged, once: `Optimiser` sets it, as its user waits for a suggestion."""
