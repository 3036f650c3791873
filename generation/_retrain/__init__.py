"""Models that are trained again every period of a stream."""
