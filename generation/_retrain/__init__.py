"""Models that are retrained every period of a stream."""
