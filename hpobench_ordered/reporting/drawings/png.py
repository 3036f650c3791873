"""Encodes scenes as PNG, on white."""

import io
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.reporting.drawings.canvas import PIXELS_PER_INCH, Canvas
from hpobench_ordered.reporting.drawings.scene import Paths, Scene, rectangle
from hpobench_ordered.reporting.style import DOTS_PER_INCH

if TYPE_CHECKING:
    from PIL.Image import Image

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
    canvas = Canvas(renderer, scale, height)
    canvas.paths(Paths((rectangle(0, 0, scene.width + 1, scene.height + 1),), fill="#FFFFFF"))
    canvas.scene(scene)
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
