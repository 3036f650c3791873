"""The files of a report, and the numbers and texts of its page."""

import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reporting_support import HOSTILE, METHODS, known_runs, made_up_trials

from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.verdict import verdicts
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.overview import Overview
from hpobench_ordered.reporting import Report, ReportInput, write_report
from hpobench_ordered.reporting.formats import Table, duration, latex, markdown
