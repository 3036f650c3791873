"""`python -m hpobench_ordered`: the command line."""

from hpobench_ordered.cli import main

if __name__ == "__main__":
    main()
