"""The files of a report, and the numbers and texts of its page."""
