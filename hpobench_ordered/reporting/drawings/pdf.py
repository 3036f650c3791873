"""Encodes scenes as PDF, for documents that cannot take SVG; text remains text."""

import io
from typing import TYPE_CHECKING

from hpobench_ordered.reporting.drawings.canvas import (
    PIXELS_PER_INCH,
    POINT,
    POINTS_PER_INCH,
    Canvas,
)

if TYPE_CHECKING:
    from hpobench_ordered.reporting.drawings.scene import Scene


def to_pdf(scene: "Scene") -> bytes:
    """Encode a scene on a page of its size, without background; the same gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_pdf import PdfFile, RendererPdf

    width, height = scene.width / PIXELS_PER_INCH, scene.height / PIXELS_PER_INCH
    buffer = io.BytesIO()
    # Fonts as TrueType: many venues refuse the other kind that matplotlib embeds.
    with mpl.rc_context({"pdf.fonttype": 42}):
        # Without a date.
        file = PdfFile(buffer, metadata={"CreationDate": None})  # type: ignore[no-untyped-call]
        file.newPage(width, height)  # type: ignore[no-untyped-call]
        renderer = RendererPdf(file, POINTS_PER_INCH, height, width)  # type: ignore[no-untyped-call]
        Canvas(renderer, POINT, scene.height * POINT).scene(scene)
        renderer.finalize()  # type: ignore[no-untyped-call]
        file.finalize()  # type: ignore[no-untyped-call]
        file.close()  # type: ignore[no-untyped-call]
    return buffer.getvalue()
