"""Encodes scenes as PNG, on white."""

import io
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
    rectangle,
    text_width,
)
from hpobench_ordered.reporting.style import DOTS_PER_INCH

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from PIL.Image import Image

PIXELS_PER_INCH = 96
"""Of a scene."""

POINTS_PER_INCH = 72

COLOURS = 256
"""Of the palette."""


def to_png(scene: Scene) -> bytes:
    """Encode a scene; the same one gives the same bytes.

    Returns:
        A PNG of `DOTS_PER_INCH`.
    """
    from matplotlib.backends.backend_agg import RendererAgg
    from PIL import Image

    scale = DOTS_PER_INCH / PIXELS_PER_INCH
    width, height = round(scene.width * scale), round(scene.height * scale)
    renderer = RendererAgg(width, height, DOTS_PER_INCH)  # type: ignore[no-untyped-call]
    canvas = _Canvas(renderer, scale, height)
    canvas.paths(Paths((rectangle(0, 0, scene.width + 1, scene.height + 1),), fill="#FFFFFF"))
    for item in scene.items:
        if isinstance(item, Text):
            canvas.text(item)
        elif isinstance(item, Repeated):
            for offset in item.offsets:
                for paths in item.paths:
                    canvas.paths(paths, offset)
        else:
            canvas.paths(item)
    pixels = np.asarray(renderer.buffer_rgba())[..., :3]  # type: ignore[no-untyped-call]
    # With a palette it is encoded in half the time, in a third of the bytes, and looks the same.
    image = Image.fromarray(np.ascontiguousarray(pixels)).quantize(
        COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    )
    _whiten(image)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", dpi=(DOTS_PER_INCH, DOTS_PER_INCH))
    return buffer.getvalue()


def _whiten(image: "Image") -> None:
    """Make the background pure white: its entry of the palette is mixed with its neighbours."""
    palette = image.getpalette() or []
    background = image.getpixel((0, 0))
    if isinstance(background, int):
        palette[3 * background : 3 * background + 3] = [255, 255, 255]
        image.putpalette(palette)


class _Canvas:
    """Draws on one of matplotlib's renderers.

    Args:
        renderer: The renderer.
        scale: Dots per pixel of the scene.
        height: Number of rows of dots.
    """

    def __init__(self, renderer: Any, scale: float, height: int) -> None:
        self._renderer = renderer
        self._scale = scale
        self._height = height

    def paths(self, item: Paths, offset: tuple[float, float] = (0.0, 0.0)) -> None:
        """Draw paths."""
        from matplotlib.colors import to_rgb
        from matplotlib.transforms import Affine2D

        if not item.lines:
            return
        moved = Affine2D().translate(*offset).scale(self._scale, -self._scale)
        moved.translate(0, self._height)
        graphics = self._renderer.new_gc()
        graphics.set_linewidth(item.width * self._scale if item.stroke else 0)
        graphics.set_foreground(item.stroke or "#FFFFFF")
        graphics.set_alpha(item.opacity)
        graphics.set_joinstyle("round")
        if item.dashes:
            graphics.set_dashes(0, [length * self._scale for length in item.dashes])
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

    points = size * POINTS_PER_INCH / PIXELS_PER_INCH
    weight = "bold" if bold else "normal"
    return FontProperties(family="DejaVu Sans", size=points, weight=weight)
