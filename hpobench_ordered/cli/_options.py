"""Options that several commands have."""

import os

import click

workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="all processors",
    help="Number of processes.",
)
