"""Records of what methods from outside had loaded: methods/VERSION-HASH.json in a store."""

from collections import defaultdict
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
from hpobench_ordered.experiment.user_methods.identity import VERSION_LENGTH, MethodRecord

METHOD_FILES = FileKind("methods", rf"(?P<key>[0-9a-f]{{{VERSION_LENGTH}}})-{HASH_GROUP}\.json")

RECORD_REMEDY = (
    "restore it or choose another folder: without it, nothing tells whether the runs of its method "
    "are up to date"
)


def write_method_record(folder: Path, record: MethodRecord) -> None:
    """Write a record to a store.

    Equal records are one file: its name (see `METHOD_FILES`) has the method's version and the
    content's hash.
    """
    content = encode_json(asdict(record))
    name = f"{record.version}-{hash_content(content, HASH_LENGTH)}.json"
    write_whole(folder / METHOD_FILES.folder / name, content)


def read_method_records(folder: Path) -> list[MethodRecord]:
    """Read all records of a store.

    Raises:
        StoreError: A record is damaged, or two contradict each other.
    """
    records = []
    for file in list_files(folder, METHOD_FILES):
        try:
            record = decode_json(file.path, file.read(), MethodRecord)
        except DamagedFileError as error:
            # It cannot be made again: `RECORD_REMEDY` tells the user what to do instead.
            raise DamagedFileError(file.path, error, RECORD_REMEDY) from None
        if record.version != file.key:  # the file's name begins with the method's version
            raise DamagedFileError(file.path, "it is that of another method", RECORD_REMEDY)
        records.append(record)
    check_agreement(records)
    return records


def check_agreement(records: Iterable[MethodRecord]) -> None:
    """Raise a `StoreError` if runs of one version of a method had loaded different files.

    These are modules of the same name whose files have different contents.
    """
    records_of_version = defaultdict[str, list[MethodRecord]](list)
    for record in records:
        records_of_version[record.version].append(record)

    for version, same_version in records_of_version.items():
        modules = list_contradicting_modules(same_version)
        if modules:
            raise StoreError(
                f"the runs of {same_version[0].method}, version {version}, had loaded different "
                f"files of the same name: {', '.join(modules)}. Remove the runs of one of them"
            )


def list_contradicting_modules(records: Iterable[MethodRecord]) -> list[str]:
    """Names of the modules whose files have different contents in different records.

    Compared are the files that were loaded only while the method ran (`record.later`): those that
    its import loads are part of its version, and so the same in all records of a version.
    """
    digests_of_module = defaultdict[str, set[str]](set)
    for record in records:
        for file in record.later.files:
            digests_of_module[file.module].add(file.digest)
    return [module for module, digests in digests_of_module.items() if len(digests) > 1]
