"""Records of what methods from outside had loaded: methods/VERSION-HASH.json in a store."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import (
    HASH_GROUP,
    HASH_LENGTH,
    DamagedFileError,
    FileKind,
    decode_json,
    encode_json,
    hash_content,
    list_files,
    write_whole,
)
from hpobench_ordered.user_methods.identity import VERSION_LENGTH, MethodRecord

METHOD_FILES = FileKind("methods", rf"(?P<key>[0-9a-f]{{{VERSION_LENGTH}}})-{HASH_GROUP}\.json")

REMEDY = (
    "restore it or choose another folder: without it, nothing tells whether the runs of its method "
    "are up to date"
)


def write_method_record(folder: Path, record: MethodRecord) -> None:
    """Write a record to a store; the same one is the same file."""
    content = encode_json(asdict(record))
    name = f"{record.version}-{hash_content(content, HASH_LENGTH)}.json"
    write_whole(folder / METHOD_FILES.folder / name, content)


def read_method_records(folder: Path) -> list[MethodRecord]:
    """Read all records of a store.

    Raises:
        StoreError: One is damaged, or two contradict each other.
    """
    records = []
    for file in list_files(folder, METHOD_FILES):
        try:
            record = decode_json(file.path, file.read(), MethodRecord)
        except DamagedFileError as error:
            raise DamagedFileError(file.path, error, REMEDY) from None
        if record.version != file.key:
            raise DamagedFileError(file.path, "it is that of another method", REMEDY)
        records.append(record)
    check_agreement(records)
    return records


def check_agreement(records: Iterable[MethodRecord]) -> None:
    """Raise a `StoreError` if a version of a method had loaded two contents of a file."""
    records = list(records)
    for record in records:
        others = [other for other in records if other.version == record.version]
        modules = contradicting_modules(record, others)
        if modules:
            raise StoreError(
                f"the runs of {record.method}, version {record.version}, had loaded different "
                f"files of the same name: {', '.join(modules)}. Remove the runs of one of them"
            )


def contradicting_modules(record: MethodRecord, others: Iterable[MethodRecord]) -> list[str]:
    """Names of modules of which another record has a file with other content."""
    digests = {file.module: file.digest for other in others for file in other.later.files}
    return [
        file.module
        for file in record.later.files
        if digests.get(file.module, file.digest) != file.digest
    ]
