"""Where data lives: artifacts with their hashes, downloads, and files written as a whole."""
