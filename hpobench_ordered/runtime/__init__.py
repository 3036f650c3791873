"""Child processes, compiled code, threads and progress bars."""
