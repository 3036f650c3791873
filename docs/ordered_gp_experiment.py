"""What each part of `ordered-gp` is for: variants of it without the part, or with another.

All variants run in the ordered protocol and are ranked among each other and some registered
methods, on each task and seed. What is not as in the method was chosen on every second benchmark of
a suite in alphabetical order, so ranks are given for these and for the others.

    python docs/ordered_gp_experiment.py --seeds 3 --output ordered-gp-experiment

Runs are in OUTPUT, and are continued. On one core the two suites take ten minutes a seed.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import _model_based, ordered_gp
from hpobench_ordered.methods._candidates import STEPS, near
from hpobench_ordered.methods._gp.model import LogPrior, Priors, TaskPriors
from hpobench_ordered.methods._gp.tasks import Observed
from hpobench_ordered.methods._model_based import Scorer
from hpobench_ordered.methods.ordered_gp import OrderedGP, Sources, standardised

TRIALS = (1, 5, 10, 25)
PEERS = ("simple-ordered", "random-search")
OFF = LogPrior(mean=-20.0, sd=1.0, lower=-20.0, upper=-20.0)
