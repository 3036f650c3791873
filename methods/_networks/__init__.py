"""Feature maps with parameters, how they are trained, and JAX as they use it."""
