"""Local copies of published files, which are used instead of a download."""

from pathlib import Path

from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.errors import DownloadError


def find_local_copy(source: Path, file: RemoteFile) -> Path:
    """Find the user's copy of a published file, which may be compressed.

    Args:
        source: The copy itself, or a folder that has a file of the published name anywhere in it.
            A file that was published in a folder, such as "rbv2_svm/model.onnx", must be in a
            folder of the same name, since several published files are named "model.onnx".
        file: The published file.

    Raises:
        DownloadError: There is no such file in the folder.
    """
    if source.is_file():
        return source
    published = Path(file.name)
    # The first part of the name is a folder of this package's cache, not one of the publisher.
    was_in_folder = len(published.parts) > 2
    for name in (published.name, f"{published.name}.gz"):
        matches = sorted(source.rglob(name))
        if was_in_folder:
            matches = [path for path in matches if path.parent.name == published.parent.name]
        if matches:
            return matches[0]
    missing = f"{published.parent.name}/{published.name}" if was_in_folder else published.name
    raise DownloadError(f"no file {missing} in {source}")
