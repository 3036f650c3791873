"""Data on disk: artifacts with their hashes, downloads, and atomic writes."""
