"""Methods from outside this package: found, wrapped, identified, and run in their own process."""
