import itertools

import numpy as np
import pytest

from hpobench_ordered.reporting.style import STYLES, drawing_order, styles

# Machado et al. (2009), severity 1.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750]]
TO_XYZ.append([0.0193339, 0.1191920, 0.9503041])


def cielab(colour: str, vision: np.ndarray) -> np.ndarray:
    """CIELAB coordinates (D65) of a colour as seen with some vision."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(vision @ linear, 0, 1)
    xyz = np.array(TO_XYZ) @ seen / [0.95047, 1, 1.08883]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_colours_can_be_told_apart(vision: str) -> None:
    seen = [cielab(style.colour, np.array(VISION[vision])) for style in STYLES.values()]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(distances) >= 20


def test_a_method_looks_the_same_whatever_others_there_are() -> None:
    some = styles(["cts", "mine", "bo"])
    assert some["cts"] == STYLES["cts"]
    assert styles(["bo"])["bo"] == some["bo"]
    assert some["mine"] not in STYLES.values()
    assert list(some) == drawing_order(["mine", "cts", "bo"]) == ["bo", "cts", "mine"]


def test_every_registered_method_has_a_look() -> None:
    from hpobench_ordered import list_methods

    assert set(list_methods()) <= set(STYLES)
