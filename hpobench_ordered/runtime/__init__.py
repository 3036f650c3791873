"""What everything runs on: child processes, compiled code, threads, progress bars."""
