"""Records of what methods from outside had loaded: methods/VERSION-HASH.json in a store."""

from dataclasses import asdict
from pathlib import Path

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
    path = folder / METHOD_FILES.folder / name
    if not path.exists():  # most runs of a method load the same
        write_whole(path, content)


def read_method_records(folder: Path) -> list[MethodRecord]:
    """Read all records of a store.

    Raises:
        StoreError: A record is damaged.
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
    return records
