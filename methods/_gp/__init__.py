"""One Gaussian process for every method that needs one."""
