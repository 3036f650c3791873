"""Type aliases used throughout the package."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Value = bool | int | float | str | None
Config = dict[str, Value]
ConfigLike = Mapping[str, Value]
