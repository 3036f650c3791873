"""What a drawing consists of, before it is encoded: paths, texts and repeated groups of paths.

Coordinates are CSS pixels (1/96 inch), x to the right and y downwards from the upper left corner.
Every drawing is described once and encoded as SVG, PNG and PDF. This is an order of
magnitude faster than a general plotting library on grids of dozens of panels, and yields SVG small
and plain enough to stand many times within one page.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties

INK = "#1A1A1A"
"""Colour of text and axes; in pictures within a page that of the page's text."""

GRID_OPACITY = 0.14
AXIS_OPACITY = 0.55
SMALL, NORMAL, LARGE = 10.0, 11.0, 13.0

BASELINE = 0.36
"""How far the baseline is below the middle of a line of text, relative to its size."""

DASHES: Mapping[str, tuple[float, ...]] = {
    "-": (),
    "--": (5.0, 2.5),
    "-.": (6.0, 2.0, 1.5, 2.0),
    ":": (1.5, 1.8),
    "---": (12.0, 3.0),
    "-..": (6.0, 2.0, 1.5, 2.0, 1.5, 2.0),
    "- -": (4.0, 5.0),
    "--.": (6.0, 2.0, 6.0, 2.0, 1.5, 2.0),
    ". .": (1.5, 4.5),
    "-...": (6.0, 2.0, 1.5, 2.0, 1.5, 2.0, 1.5, 2.0),
    "::": (2.8, 1.4),
    "---.": (12.0, 2.0, 1.5, 2.0),
}
"""Lengths of dashes and gaps by line style; the first four are matplotlib's as well."""


class Anchor(Enum):
    """Which point of a text its position is, by the names of SVG."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True, slots=True)
class Paths:
    """Lines or areas that look alike.

    Attributes:
        lines: Their corners, shape (n, 2) each.
        stroke: Colour of the lines; none without.
        fill: Colour of the areas; none without.
        width: Width of the lines.
        dashes: Lengths of dashes and gaps; none for lines drawn through.
        opacity: Opacity of lines and areas.
        closed: Whether each ends where it began.
        label: What they stand for, as shown by a browser under the pointer.
    """

    lines: tuple[FloatArray, ...]
    stroke: str | None = None
    fill: str | None = None
    width: float = 1.0
    dashes: tuple[float, ...] = ()
    opacity: float = 1.0
    closed: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text.

    Attributes:
        x: Where the anchor is.
        y: Where the baseline is.
        string: The text.
        size: Size of the font.
        anchor: Which point is at x.
        angle: Degrees by which it is turned about (x, y), anticlockwise.
        bold: Whether it is bold.
        colour: Its colour.
    """

    x: float
    y: float
    string: str
    size: float = SMALL
    anchor: Anchor = Anchor.START
    angle: float = 0.0
    bold: bool = False
    colour: str = INK

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, upper, right and lower end of what it covers."""
        width = text_width(self.string, size=self.size, bold=self.bold)
        shift = {Anchor.START: 0.0, Anchor.MIDDLE: width / 2, Anchor.END: width}[self.anchor]
        along = np.array([-shift, width - shift])
        across = np.array([-0.78 * self.size, 0.22 * self.size])
        turn = np.radians(-self.angle)
        xs = self.x + np.add.outer(along * np.cos(turn), -across * np.sin(turn))
        ys = self.y + np.add.outer(along * np.sin(turn), across * np.cos(turn))
        return float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())


@dataclass(frozen=True, slots=True)
class Repeated:
    """Paths that are drawn at several places.

    Attributes:
        name: What tells it apart from others of the scene.
        paths: The paths.
        offsets: How far each copy is moved, to the right and downwards.
    """

    name: str
    paths: tuple[Paths, ...]
    offsets: tuple[tuple[float, float], ...]


Item = Paths | Text | Repeated


@dataclass(slots=True)
class Scene:
    """A drawing in the making; later items cover earlier ones.

    Attributes:
        width: Its width.
        height: Its height.
        items: What it consists of.
    """

    width: float
    height: float
    items: list[Item] = field(default_factory=list)

    def add(self, *items: Item) -> None:
        """Draw on top of what is there."""
        self.items.extend(items)

    @property
    def texts(self) -> list[Text]:
        """All lines of text."""
        return [item for item in self.items if isinstance(item, Text)]

    @property
    def paths(self) -> list[Paths]:
        """All paths that are drawn once."""
        return [item for item in self.items if isinstance(item, Paths)]


def centred(
    x: float,
    y: float,
    string: str,
    *,
    size: float = SMALL,
    anchor: Anchor = Anchor.MIDDLE,
    colour: str = INK,
    bold: bool = False,
) -> Text:
    """A text whose middle line is at y."""
    return Text(x, y + BASELINE * size, string, size, anchor, bold=bold, colour=colour)


def rectangle(left: float, top: float, right: float, bottom: float) -> FloatArray:
    """Corners of a rectangle, shape (4, 2)."""
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]])


def markers(marker: str, centres: FloatArray, *, size: float) -> tuple[FloatArray, ...]:
    """Outlines of one of matplotlib's filled markers.

    Args:
        marker: Its code, such as "s".
        centres: Where they are, shape (n, 2).
        size: Width.
    """
    outline = _outline(marker) * size
    return tuple(outline + centre for centre in centres)


@lru_cache(maxsize=64)
def _outline(marker: str) -> FloatArray:
    from matplotlib.markers import MarkerStyle

    if marker == "o":
        angles = np.linspace(0, 2 * np.pi, 13)[:-1]
        return np.stack([np.cos(angles), np.sin(angles)], axis=1) / 2
    style = MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    (corners,) = path.to_polygons(closed_only=False)
    outline = np.asarray(corners, dtype=np.float64) * [1, -1]
    outline = outline[:-1] if (outline[0] == outline[-1]).all() else outline
    return np.asarray(outline / np.ptp(outline, axis=0).max())


@lru_cache(maxsize=4096)
def text_width(string: str, *, size: float, bold: bool = False) -> float:
    """Width of a text in DejaVu Sans, which is wider than most fonts that browsers choose."""
    from matplotlib.textpath import TextToPath

    width, _, _ = TextToPath().get_text_width_height_descent(string, _font(bold), ismath=False)
    return float(width) * size / FONT_UNIT


FONT_UNIT = 100.0
"""Size at which texts are measured: large, as the measure is rounded."""


@lru_cache(maxsize=2)
def _font(bold: bool) -> "FontProperties":
    from matplotlib.font_manager import FontProperties

    weight = "bold" if bold else "normal"
    return FontProperties(family="DejaVu Sans", size=FONT_UNIT, weight=weight)


def widest(strings: Iterable[str], *, size: float = SMALL) -> float:
    """Width of the widest of some texts; 0 without any."""
    return max((text_width(string, size=size) for string in strings), default=0.0)


def area(x: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Corners of the area between two curves, shape (2n, 2)."""
    return np.concatenate([np.stack([x, upper], axis=1), np.stack([x[::-1], lower[::-1]], axis=1)])


def shortened(string: str, *, width: float, size: float = SMALL) -> str:
    """A text that is not wider than given; its end is cut off where it would be."""
    if text_width(string, size=size) <= width:
        return string
    kept = next(
        (n for n in range(len(string), 0, -1) if text_width(string[:n] + "…", size=size) <= width),
        0,
    )
    return string[:kept].rstrip() + "…"
