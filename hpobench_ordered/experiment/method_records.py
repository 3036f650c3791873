"""Records of what methods from outside had loaded: methods/VERSION-HASH.json in a store."""

from dataclasses import asdict
from pathlib import Path

from hpobench_ordered.data.identity import hash_bytes
from hpobench_ordered.experiment._files import encode_json, read_json, write_file
from hpobench_ordered.experiment.user_methods.identity import MethodRecord

METHODS_FOLDER = "methods"
HASH_LENGTH = 16
"""Digits of the hash in the name of a record."""

RECORD_REMEDY = (
    "restore it or choose another folder: without it, nothing tells whether the runs of its method "
    "are up to date"
)


def write_method_record(folder: Path, record: MethodRecord) -> None:
    """Write a record to a store.

    Equal records are one file: its name has the method's version and the content's hash.
    """
    content = encode_json(asdict(record))
    name = f"{record.version}-{hash_bytes(content)[:HASH_LENGTH]}.json"
    path = folder / METHODS_FOLDER / name
    if not path.exists():  # most runs of a method load the same
        write_file(path, content)


def read_method_records(folder: Path) -> list[MethodRecord]:
    """Read all records of a store.

    Raises:
        StoreError: A record is damaged.
    """
    paths = sorted((folder / METHODS_FOLDER).glob("*.json"))
    return [read_json(path, MethodRecord, RECORD_REMEDY) for path in paths]
