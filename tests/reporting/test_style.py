import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from hpobench_ordered.reporting.drawings.scene import DASHES, INK
from hpobench_ordered.reporting.style import (
    SPARE,
    STYLES,
    VARIABLES,
    Style,
    drawing_order,
    styles,
    theme,
)

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


THEMES = {"light": ("#FFFFFF", False), "dark": ("#14171C", True)}


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def colours(looks: Iterable[Style], *, dark: bool) -> list[str]:
    return [look.dark_colour if dark else look.colour for look in looks]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("vision", VISION)
def test_colours_can_be_told_apart(vision: str, dark: bool) -> None:
    every = colours((*STYLES.values(), *SPARE), dark=dark)
    seen = [cielab(colour, np.array(VISION[vision])) for colour in every]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(distances) >= 13
    own = seen[: len(STYLES)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(own, 2)) >= 20


@pytest.mark.parametrize("theme_name", THEMES)
def test_colours_stand_out_from_the_page(theme_name: str) -> None:
    page, dark = THEMES[theme_name]
    for colour in theme(dark=dark).values():
        brighter, darker = sorted([luminance(colour), luminance(page)], reverse=True)
        assert (brighter + 0.05) / (darker + 0.05) >= 3, colour


def test_other_methods_stand_out_from_a_dark_page() -> None:
    page = luminance(THEMES["dark"][0]) + 0.05
    for colour in colours(SPARE, dark=True):
        assert (luminance(colour) + 0.05) / page >= 4, colour


@pytest.mark.parametrize("dark", [False, True])
def test_the_first_other_methods_are_the_farthest_from_the_papers(dark: bool) -> None:
    own = [cielab(colour, np.eye(3)) for colour in colours(STYLES.values(), dark=dark)]
    first = [cielab(colour, np.eye(3)) for colour in colours(SPARE[:2], dark=dark)]
    for a, b in itertools.product(first, own):
        assert np.linalg.norm(a - b) >= 30
    assert np.linalg.norm(first[0] - first[1]) >= 30


def test_lines_tell_methods_apart_without_colour() -> None:
    assert STYLES["random-search"].line != STYLES["bo"].line
    assert STYLES["random-search"].marker != STYLES["bo"].marker
    assert {look.line for look in STYLES.values()} <= {"-", "--", "-.", ":"}  # of matplotlib
    patterns = [DASHES[look.line] for look in SPARE]
    assert len(set(patterns)) == len(SPARE)
    assert not set(patterns) & {DASHES[look.line] for look in STYLES.values()}


def test_every_look_is_a_custom_property_of_its_own() -> None:
    looks = (*STYLES.values(), *SPARE)
    assert len(VARIABLES) == len(looks) == len(set(VARIABLES.values()))
    for dark in (False, True):
        values = theme(dark=dark)
        assert list(values.values()) == colours(looks, dark=dark)
        assert set(values) == set(VARIABLES.values())


def test_up_to_eight_other_methods_look_different() -> None:
    others = styles([f"mine-{number}" for number in range(8)])
    assert len({(look.colour, look.marker, look.line) for look in others.values()}) == 8
    assert INK not in VARIABLES


def test_a_method_looks_the_same_whatever_others_there_are() -> None:
    some = styles(["cts", "mine", "bo"])
    assert some["cts"] == STYLES["cts"]
    assert styles(["bo"])["bo"] == some["bo"]
    assert some["mine"] not in STYLES.values()
    assert list(some) == drawing_order(["mine", "cts", "bo"]) == ["bo", "cts", "mine"]


def test_every_registered_method_has_a_look() -> None:
    from hpobench_ordered import list_methods

    assert set(list_methods()) <= set(STYLES)
