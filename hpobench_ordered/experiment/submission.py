"""Results that others submitted: methods in the reference results that are not in the package.

In results and tables their names end with a mark, `analysis.labels.SUBMITTED_MARK`. A description
says who ran what; it comes with the reference results.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hpobench_ordered.analysis.labels import SUBMITTED_MARK
from hpobench_ordered.data.names import check_name
from hpobench_ordered.errors import ArtifactError, HPOBenchOrderedError

SUBMISSIONS_FILE = "submissions.json"
"""The descriptions, by name, in the artifact of the reference results."""

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Address = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s()<>]+$", max_length=500)]


class Submission(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Description of a submitted method: all that a reader of a table learns about it."""

    summary: Text
    """What it is, in one line."""
    paper: Text
    """Where it is described: authors, year and an identifier or address."""
    code: Address
    """Address of its code."""
    versions: Text
    """Packages with their versions, such as "smac 2.4.1"."""
    ran_by: Text
    """Who ran it."""
    command: Text
    """How it was run."""
    note: str = ""
    """What readers should know, such as what was left out for its time."""


def read_submission(path: Path) -> tuple[str, Submission]:
    """Read the description of a submission, a TOML file named after the method.

    Returns:
        The name of the method in results, with the mark; and the description.

    Raises:
        ArtifactError: It is not such a description; the message says what is wrong.
    """
    try:
        check_name("method", path.stem)
        submission = msgspec.toml.decode(path.read_bytes(), type=Submission)
    except (HPOBenchOrderedError, msgspec.MsgspecError, OSError, ValueError) as error:
        raise ArtifactError(f"{path} does not describe a submission: {error}") from None
    return path.stem + SUBMITTED_MARK, submission


def submissions_from_json(content: Any) -> Mapping[str, Submission]:
    """Read the descriptions that come with the reference results, by name of the method."""
    try:
        return msgspec.convert(content, dict[str, Submission])
    except msgspec.ValidationError as error:
        raise ArtifactError(f"{SUBMISSIONS_FILE} does not describe submissions: {error}") from None
