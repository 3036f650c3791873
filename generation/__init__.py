"""Generation of artifacts from raw evaluations, one module per benchmark family."""

if __name__ != "hpobench_ordered.generation":
    raise ImportError(
        f"import this package as hpobench_ordered.generation, not {__name__}: "
        "a second copy would break isinstance"
    )
