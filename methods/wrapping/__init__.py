"""Optimisers of others as methods: found by where they can be imported from, and wrapped."""
