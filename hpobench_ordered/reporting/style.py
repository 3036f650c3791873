"""How every figure of the package looks: a fixed look per method, and how figures are saved.

The groups are coloured as in Hellan et al. (2023), figure 5: methods that know the order of tasks
blue, purple and pink, standard transfer methods yellow and red, methods without transfer green.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 200


@dataclass(frozen=True, slots=True)
class Style:
    """How a method is drawn.

    Attributes:
        colour: Colour of bars, lines and points on white.
        marker: Marker of points.
        line: Line style of curves, a key of `drawings.scene.DASHES`.
        dark_colour: Colour on a dark page.
    """

    colour: str
    marker: str
    line: str
    dark_colour: str


# Any two colours of the paper's methods stay apart (20 or more in CIELAB) for readers with any of
# the three kinds of colour blindness as well, on white and on a dark page; those of other methods
# stay 13 apart from these and from each other. All have a contrast of at least 3:1. On a
# dark page, those of other methods have one of at least 4:1. Markers and lines tell the groups
# apart without colour; the lines of the paper's methods are line styles of matplotlib's as well.
STYLES: Mapping[str, Style] = {
    "random-search": Style("#007553", "s", ":", "#37A36D"),
    "bo": Style("#75974F", "<", "-", "#B6DC8C"),
    "bounding-box": Style("#7C1006", "^", "-.", "#C4412F"),
    "zero-shot": Style("#B53F0C", "v", "-.", "#E98335"),
    "cts": Style("#D77B05", "P", "-.", "#FEC53A"),
    "transfer-bo": Style("#7819AD", "D", "--", "#924A9F"),
    "simple-ordered-shuffled": Style("#1C99CD", "X", "--", "#58C6F9"),
    "simple-ordered": Style("#141B52", "o", "--", "#8668DB"),
    "simple-previous": Style("#B63390", "p", "--", "#BE5C93"),
    "simple-previous-no-bo": Style("#C18199", "X", "--", "#E8C9E1"),
    "dre-ordered": Style("#0134F7", "h", "--", "#195AF2"),
}
"""Looks of the paper's methods, in the order in which they are drawn."""

SPARE = (
    Style("#8680F6", ">", "---", "#EEEF08"),
    Style("#610A30", "^", "-..", "#9DFF7D"),
    Style("#FF37C6", "8", "- -", "#F397AA"),
    Style("#240B04", "*", "--.", "#EAFDCA"),
    Style("#4F00C2", "H", "::", "#B48CC7"),
    Style("#475529", "d", "-...", "#FE055F"),
    Style("#214D5C", "v", "---.", "#A794FE"),
    Style("#56966C", "p", ". .", "#06CB4E"),
)
"""Looks of other methods, given out in the order of their names; the first two are the farthest
from the paper's methods."""

VARIABLES: Mapping[str, str] = {
    look.colour: f"--m-{number}" for number, look in enumerate((*STYLES.values(), *SPARE))
}
"""By colour the CSS custom property that stands for it in pictures within a page."""


def theme(*, dark: bool) -> dict[str, str]:
    """Values of the CSS custom properties of `VARIABLES`, on a white or on a dark page."""
    looks = (*STYLES.values(), *SPARE)
    return {VARIABLES[look.colour]: look.dark_colour if dark else look.colour for look in looks}


def drawing_order(methods: Iterable[str]) -> list[str]:
    """Sort methods as they are drawn: the paper's as in its figures, then others by name."""
    ranks = {method: rank for rank, method in enumerate(STYLES)}
    return sorted(methods, key=lambda method: (ranks.get(method, len(ranks)), method))


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """The look of each method, in drawing order; the paper's look the same in every figure."""
    ordered = drawing_order(methods)
    others = [method for method in ordered if method not in STYLES]
    spare = {method: SPARE[i % len(SPARE)] for i, method in enumerate(others)}
    return {method: STYLES.get(method) or spare[method] for method in ordered}


def tidy(axes: "Axes") -> None:
    """Take away what carries no information: the frame above and on the right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def legend_below(figure: "Figure", *, columns: int = 6) -> None:
    """Put one legend under all panels, each method once and in drawing order."""
    entries = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    labels = drawing_order(entries)
    figure.legend(
        [entries[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=min(columns, max(1, len(labels))),
        frameon=False,
        fontsize=9,
    )


def figure_files(figure: "Figure", stem: str) -> dict[str, bytes]:
    """Encode a figure as PNG and SVG, by file name; the same figure gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.set_dpi(DOTS_PER_INCH)
    # Laid out once: `savefig` would do so twice for each format, which takes most of the time.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    png, svg = io.BytesIO(), io.BytesIO()
    FigureCanvasAgg(figure).print_png(png)  # type: ignore[no-untyped-call]
    # Neither a date nor random ids.
    with mpl.rc_context({"svg.hashsalt": "hpobench_ordered"}):
        FigureCanvasSVG(figure).print_svg(  # type: ignore[no-untyped-call]
            svg, metadata={"Date": None}
        )
    return {f"{stem}.png": png.getvalue(), f"{stem}.svg": svg.getvalue()}
