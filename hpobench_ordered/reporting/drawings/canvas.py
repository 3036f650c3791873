"""Draws scenes with matplotlib's renderers, of pixels or of paths."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.reporting.drawings.scene import (
    Anchor,
    Paths,
    Repeated,
    Scene,
    Text,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path

PIXELS_PER_INCH = 96
"""Of a scene."""

POINTS_PER_INCH = 72

POINT = POINTS_PER_INCH / PIXELS_PER_INCH
"""Points per pixel of a scene: renderers take fonts, widths and dashes in points."""


class Canvas:
    """Draws on one of matplotlib's renderers.

    Args:
        renderer: The renderer.
        scale: Dots, or points, per pixel of the scene.
        height: Height of the picture, in dots or points.
    """

    def __init__(self, renderer: Any, scale: float, height: float) -> None:
        self._renderer = renderer
        self._scale = scale
        self._height = height

    def scene(self, scene: Scene) -> None:
        """Draw all items of a scene."""
        for item in scene.items:
            if isinstance(item, Text):
                self.text(item)
            elif isinstance(item, Repeated):
                for offset in item.offsets:
                    for paths in item.paths:
                        self.paths(paths, offset)
            else:
                self.paths(item)

    def paths(self, item: Paths, offset: tuple[float, float] = (0.0, 0.0)) -> None:
        """Draw paths."""
        from matplotlib.colors import to_rgb
        from matplotlib.transforms import Affine2D

        if not item.lines:
            return
        moved = Affine2D().translate(*offset).scale(self._scale, -self._scale)
        moved.translate(0, self._height)
        graphics = self._renderer.new_gc()
        graphics.set_linewidth(item.width * POINT if item.stroke else 0)
        graphics.set_foreground(item.stroke or "#FFFFFF")
        graphics.set_alpha(item.opacity)
        graphics.set_joinstyle("round")
        if item.dashes:
            graphics.set_dashes(0, [length * POINT for length in item.dashes])
        face = to_rgb(item.fill) if item.fill else None
        self._renderer.draw_path(graphics, _compound(item.lines, closed=item.closed), moved, face)
        graphics.restore()

    def text(self, item: Text) -> None:
        """Draw a text."""
        graphics = self._renderer.new_gc()
        graphics.set_foreground(item.colour)
        width = text_width(item.string, size=item.size, bold=item.bold)
        shift = {Anchor.START: 0.0, Anchor.MIDDLE: width / 2, Anchor.END: width}[item.anchor]
        turn = np.radians(-item.angle)
        x = self._scale * (item.x - shift * np.cos(turn))
        y = self._scale * (item.y - shift * np.sin(turn))
        # Renderers of pixels count rows of text from the top, those of paths from the bottom.
        y = y if self._renderer.flipy() else self._height - y
        font = _font(item.size, item.bold)
        self._renderer.draw_text(graphics, x, y, item.string, font, item.angle)
        graphics.restore()


def _compound(lines: tuple[FloatArray, ...], *, closed: bool) -> "Path":
    """One path of several lines."""
    from matplotlib.path import Path

    corners, codes = [], []
    for line in lines:
        kinds = np.full(len(line) + closed, Path.LINETO, dtype=Path.code_type)
        kinds[0] = Path.MOVETO
        if closed:
            kinds[-1] = Path.CLOSEPOLY
            corners.append(line[:1])
            corners[-1:] = [line, line[:1]]
        else:
            corners.append(line)
        codes.append(kinds)
    return Path(np.concatenate(corners), np.concatenate(codes))


@lru_cache(maxsize=64)
def _font(size: float, bold: bool) -> "FontProperties":
    from matplotlib.font_manager import FontProperties

    weight = "bold" if bold else "normal"
    return FontProperties(family="DejaVu Sans", size=size * POINT, weight=weight)
