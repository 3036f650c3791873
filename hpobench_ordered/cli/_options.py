"""Options that several commands have."""

import os

import click

from hpobench_ordered.experiment.parallel import TIME_LIMIT

CHECK_LIMIT = 30.0
"""Seconds that one call into a method may take while it is checked."""

time_limit_option = click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    show_default=f"{TIME_LIMIT:g}, and {CHECK_LIMIT:g} in checks",
    help="Seconds a method may take for one suggestion, 0 for no limit.",
)

workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="all processors",
    help="Number of processes.",
)

measured_only_option = click.option(
    "--measured-only",
    is_flag=True,
    help="Leave out interpolated tasks, and surrogates that stand in for others.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
