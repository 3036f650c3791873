"""The kinds of figures that papers on transfer draw, each from the results alone."""
