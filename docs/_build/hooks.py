"""Hooks of MkDocs: pages made from the registry, formulas as MathML, a name for the search."""

from pathlib import Path, PurePosixPath
from typing import Literal

import benchmark_pages
import command_page
import leaderboard_page
import mathml
import method_pages
import public_names
import recommend
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import hpobench_ordered as hbo
from hpobench_ordered.methods.registry import method_spec

TABLE = "<!-- table -->"
"""Where the overview goes in the first page of benchmarks and of methods."""


commands: list[str] = []
"""The command of MkDocs, "build" or "serve", once it has started."""


def on_startup(*, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    """Remember the command."""
    commands.append(command)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write the reports that the leaderboard links to; not at every change of pages served."""
    if commands != ["serve"]:
        leaderboard_page.write_reports(Path(config.site_dir))


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what is generated: benchmarks, figures, methods without a page, the commands."""
    content_of_path: dict[str, str | bytes] = {"cli.md": command_page.text()}
    content_of_path |= leaderboard_page.figures()
    for name in hbo.list_benchmarks():
        page = benchmark_pages.page(name)
        content_of_path[f"benchmarks/{name}.md"] = page.text
        if page.figure is not None:
            content_of_path[f"benchmarks/figures/{name}.svg"] = page.figure
    for name in hbo.list_methods():
        path = f"methods/{name}.md"
        is_hand_written = files.get_file_from_path(path) is not None
        if not is_hand_written:
            content_of_path[path] = method_pages.draft(method_spec(name))
    for path, content in content_of_path.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in recommendations, facts of methods, overviews, and what a module exports."""
    path = PurePosixPath(page.file.src_uri)
    methods_folder = "" if path.parent == PurePosixPath("methods") else "methods/"
    markdown = recommend.fill_page(markdown, methods_folder=methods_folder)
    if path == PurePosixPath("benchmarks/index.md"):
        return markdown.replace(TABLE, benchmark_pages.overview())
    if path == PurePosixPath("methods/index.md"):
        return markdown.replace(TABLE, method_pages.overview())
    if path == PurePosixPath("leaderboard.md"):
        return leaderboard_page.filled(markdown)
    if path.parent == PurePosixPath("methods"):
        markdown = leaderboard_page.fill_comparison(markdown)
        return method_pages.filled(markdown, method_spec(path.stem))
    return public_names.filled(markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Set the formulas."""
    return mathml.with_mathml(html)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Name the theme's dialogue for screen readers, which the theme leaves without a name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')
