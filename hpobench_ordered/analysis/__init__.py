"""Analysis: pure functions on arrays and frames; import them from their modules."""
