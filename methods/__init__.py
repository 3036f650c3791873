"""Transfer hyperparameter optimisation methods, one module a family."""

if __name__ != "hpobench_ordered.methods":
    raise ImportError(
        f"import this package as hpobench_ordered.methods, not {__name__}: "
        "a second copy would break isinstance"
    )
