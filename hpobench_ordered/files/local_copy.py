"""Local copies of published files, which are used instead of a download."""

from pathlib import Path

from hpobench_ordered.core.files import PublishedFile
from hpobench_ordered.errors import DownloadError


def find_local_copy(source: Path, file: PublishedFile) -> Path:
    """Find a published file, maybe compressed, in a folder.

    Args:
        source: The copy itself, or a folder with a file of that name anywhere in it. Of several
            the first is used whose folder has the published folder's name.
        file: The published file.

    Raises:
        DownloadError: There is no such file in the folder.
    """
    if source.is_file():
        return source
    published = Path(file.name)
    for name in (published.name, f"{published.name}.gz"):
        matches = sorted(source.rglob(name))
        in_same_folder = [path for path in matches if path.parent.name == published.parent.name]
        if in_same_folder:
            return in_same_folder[0]
        if matches:
            return matches[0]
    raise DownloadError(f"no file {published.name} in {source}")
