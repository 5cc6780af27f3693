"""The laboratory: does the work in NumPy and counts it; imports nothing of the symbolic tower."""
