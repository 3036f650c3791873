"""OpenML's public records of evaluations, through its own client."""
