"""What benchmarks, their tasks and histories are, and how they are found by name."""
