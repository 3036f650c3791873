"""Downloads and local copies of published files, and the cache that holds them."""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hpobench_ordered.errors import ArtifactError, DownloadError, NotFetchedError
from hpobench_ordered.files import download as _download
from hpobench_ordered.files.download import OFFLINE_VARIABLE
from hpobench_ordered.files.remote import CACHE_VARIABLE, RemoteFile
from hpobench_ordered.generation._openml.client import Connection, connected

# Downloads use the real client, and a server on the loopback interface.
CONTENT = b"published " * 20_000
"""Content of the published file, larger than what is read at once."""
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NOWHERE = "http://127.0.0.1:9/file"
"""An address where no server answers."""

requested: list[str] = []
"""Path of every request."""


class Handler(BaseHTTPRequestHandler):
    """Serves the file in the way that the path says.

    It is whole at "good", one byte too short at "cut", "cut-once" only the first time; "to-good"
    leads to "good", "busy" refuses twice, "always-busy" each time. There is nothing else.
    """

    def do_GET(self) -> None:
        """Answer a request of "/good" and so on; some fail only at first, so requests count."""
        kind = self.path[1:]
        earlier_requests = requested.count(self.path)
        requested.append(self.path)
        if kind == "cut" or (kind == "cut-once" and earlier_requests == 0):
            self.answer(CONTENT[:-1], announced=len(CONTENT))
        elif kind == "always-busy" or (kind == "busy" and earlier_requests < 2):
            self.send_error(503)
        elif kind in ("good", "cut-once", "busy"):
            self.answer(CONTENT)
        elif kind == "to-good":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
        else:
            self.send_error(404)

    def answer(self, data: bytes, *, announced: int | None = None) -> None:
        """Send data; `announced` is the length that the header says, by default the true one."""
        self.send_response(200)
        self.send_header("Content-Length", str(announced or len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    """Address of a server that answers as `Handler` says, such as "http://127.0.0.1:50000"."""
    instance = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=instance.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{instance.server_port}"
    instance.shutdown()
    thread.join()
    instance.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty folder for the cache; downloads are permitted, and tried again without a pause."""
    requested.clear()
    monkeypatch.delenv(OFFLINE_VARIABLE, raising=False)
    monkeypatch.setattr(_download, "FIRST_PAUSE", 0.0)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def list_cache(cache: Path) -> list[str]:
    """Paths of the files in the cache, relative to its folder."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["good", "to-good"])
def test_downloaded_file_is_in_cache(server, cache, kind):
    """Directly, and by a redirection."""
    file = RemoteFile("folder/file", f"{server}/{kind}", DIGEST)

    file.download()

    assert file.open_path().read_bytes() == CONTENT
    assert list_cache(cache) == ["folder/file"]


@pytest.mark.parametrize("kind", ["good", "to-good"])
def test_download_reports_its_progress(server, kind):
    """Bytes that were received, and those in all."""
    reports: list[tuple[int, int]] = []
    file = RemoteFile("folder/file", f"{server}/{kind}", DIGEST)

    file.download(progress=lambda done, total: reports.append((done, total)))

    assert reports == sorted(reports)
    assert reports[-1] == (len(CONTENT), len(CONTENT))


def test_file_must_be_fetched_before_opening():
    file = RemoteFile("folder/file", NOWHERE, DIGEST)

    with pytest.raises(NotFetchedError, match="folder/file"):
        file.open_path()


@pytest.mark.parametrize(
    ("path", "digest", "message"),
    [
        # The wrong hash, no such file, failures whenever it is tried, and a cut connection
        ("/good", "0" * 64, r"^http://127.*/good is not the published file"),
        ("/missing", DIGEST, "HTTP 404"),
        ("/always-busy", DIGEST, r"HTTP 503, in 4 attempts.*--from"),
        ("/cut", None, "the connection broke, in 4 attempts"),
    ],
)
def test_failed_download_leaves_no_file(server, cache, path, digest, message):
    """A file of another hash, a missing one, a busy server, or a connection that breaks."""
    file = RemoteFile("file", server + path, digest)

    with pytest.raises(DownloadError, match=message):
        file.download()

    assert list_cache(cache) == []


def test_missing_file_is_requested_once(server):
    """Unlike a busy server, a missing file is not tried again."""
    file = RemoteFile("file", f"{server}/missing", DIGEST)

    with pytest.raises(DownloadError, match="HTTP 404"):
        file.download()

    assert requested == ["/missing"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://127.0.0.1/file", "cannot download"),  # only HTTP is supported
        ("http://[/x", "cannot download"),  # not a URL
        (NOWHERE, "no connection.*--from"),
    ],
)
def test_url_without_server_is_refused(url, message, cache):
    """Another protocol, a malformed URL, or an address where no server answers."""
    file = RemoteFile("file", url, DIGEST)

    with pytest.raises(DownloadError, match=message):
        file.download()

    assert list_cache(cache) == []


@pytest.mark.parametrize(("kind", "number_of_requests"), [("busy", 3), ("cut-once", 2)])
def test_passing_failures_are_tried_again(server, cache, kind, number_of_requests):
    """The server refuses twice, or cuts only the first answer."""
    file = RemoteFile("file", f"{server}/{kind}", DIGEST)

    file.download()

    assert file.open_path().read_bytes() == CONTENT
    assert len(requested) == number_of_requests
    assert list_cache(cache) == ["file"]


def test_nothing_is_downloaded_offline(server, cache, monkeypatch):
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    file = RemoteFile("file", f"{server}/good", DIGEST)

    with pytest.raises(DownloadError, match=r"OFFLINE is set.*fetch NAME --from"):
        file.download()

    assert list_cache(cache) == []
    assert requested == []


def test_openml_is_not_asked_offline(monkeypatch):
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    connection = connected(Connection(NOWHERE))

    with pytest.raises(DownloadError, match="OFFLINE is set"), connection:
        pytest.fail("there is no connection")


def test_offline_zero_permits_downloads(server, cache, monkeypatch):
    monkeypatch.setenv(OFFLINE_VARIABLE, "0")

    RemoteFile("file", f"{server}/good", DIGEST).download()

    assert list_cache(cache) == ["file"]


@pytest.mark.parametrize("name", ["copy", "copy.gz"])
def test_copy_of_other_content_is_refused(tmp_path, cache, name):
    """A file that has another hash, and one that is not compressed as its name says."""
    copy = tmp_path / name
    copy.write_bytes(b"something else")

    with pytest.raises(DownloadError):
        RemoteFile("file", NOWHERE, DIGEST).store(copy)

    assert not cache.exists()


def test_cache_must_be_a_folder(tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    copy.write_bytes(CONTENT)
    # The variable names a file, here the copy itself.
    monkeypatch.setenv(CACHE_VARIABLE, str(copy))

    with pytest.raises(ArtifactError, match="cannot write to the cache"):
        RemoteFile("file", NOWHERE, DIGEST).store(copy)


def link_to_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_large_file(path: Path) -> None:
    """Make a file of 1001 bytes."""
    path.write_bytes(b"0" * 1001)


def make_expanding_file(path: Path) -> None:
    """Make a small compressed file that has 1001 bytes when unpacked."""
    path.write_bytes(gzip.compress(b"0" * 1001, compresslevel=1))


# How each is made, its name, and why it is refused.
UNREADABLE = {
    "device": (link_to_endless_device, "file", "not a regular file"),
    "folder": (Path.mkdir, "file", "not a regular file"),
    "large file": (make_large_file, "file", "more than 1,000 bytes"),
    "expanding file": (make_expanding_file, "file.gz", "more than 1,000 bytes"),
}


@pytest.mark.parametrize(("make", "name", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_only_regular_files_are_copied(tmp_path, cache, monkeypatch, make, name, reason):
    """At most 1000 bytes are read here; the files have 1001, and the device never ends."""
    monkeypatch.setattr("hpobench_ordered.files.remote.MAX_COPY_SIZE", 1000)
    copy = tmp_path / name
    make(copy)

    with pytest.raises(DownloadError, match=f"cannot read .*{name}: .*{reason}"):
        RemoteFile("file", NOWHERE, DIGEST).store(copy)

    assert not cache.exists()


def store_copy(folder: Path, digest: str | None, content: bytes = CONTENT) -> RemoteFile:
    """Put a local copy of a file into the cache, and return the file; its hash may be unknown."""
    copy = folder / "copy"
    copy.write_bytes(content)
    file = RemoteFile("file", NOWHERE, digest)
    file.store(copy)
    return file


def test_compressed_local_copy_is_unpacked(tmp_path):
    copy = tmp_path / "copy.gz"
    copy.write_bytes(gzip.compress(CONTENT))
    file = RemoteFile("file", NOWHERE, DIGEST)

    file.store(copy)

    assert file.open_path().read_bytes() == CONTENT


WITH_OR_WITHOUT_DIGEST = pytest.mark.parametrize("digest", [DIGEST, None])
"""Some published files have no hash in the package: that of their first content is recorded."""


@WITH_OR_WITHOUT_DIGEST
def test_local_copy_is_stored(tmp_path, digest):
    file = store_copy(tmp_path, digest)

    assert file.open_path().read_bytes() == CONTENT


@WITH_OR_WITHOUT_DIGEST
def test_damage_in_cache_is_noticed(tmp_path, digest):
    file = store_copy(tmp_path, digest)
    file.path.write_bytes(CONTENT[:-1])

    with pytest.raises(ArtifactError, match="damaged"):
        file.open_path()


def test_other_content_of_unpinned_file_is_refused(tmp_path, cache):
    """Without a published hash, that of the first content is recorded and must stay the same."""
    file = store_copy(tmp_path, digest=None)
    file.path.unlink()

    with pytest.raises(DownloadError, match=r"first fetched .* delete .*file\.sha256"):
        store_copy(tmp_path, digest=None, content=b"other")

    assert list_cache(cache) == ["file.sha256"]


def test_first_content_is_accepted_again(tmp_path):
    """Without a published hash, that of the first content is recorded and must stay the same."""
    first_file = store_copy(tmp_path, digest=None)
    first_file.path.unlink()

    file = store_copy(tmp_path, digest=None)

    assert file.open_path().read_bytes() == CONTENT


def test_unpinned_file_needs_recorded_hash(tmp_path, cache):
    """Without a published hash, the recorded one is all there is to check a file by."""
    file = store_copy(tmp_path, digest=None)
    (cache / "file.sha256").unlink()

    with pytest.raises(ArtifactError, match="no recorded hash; delete it"):
        file.open_path()


def test_other_content_replaces_file_without_hash(tmp_path, cache):
    """The recorded hash was deleted, so the next content counts as the first."""
    store_copy(tmp_path, digest=None)
    (cache / "file.sha256").unlink()

    file = store_copy(tmp_path, digest=None, content=b"other")

    assert file.open_path().read_bytes() == b"other"


@WITH_OR_WITHOUT_DIGEST
@pytest.mark.parametrize("error", [ValueError, ArtifactError])
def test_content_is_checked_before_it_is_stored(tmp_path, cache, digest, error):
    """Besides its hash, a file may have a function that checks its content."""

    def refuse(data: bytes) -> None:
        assert data == CONTENT
        raise error("not such a file")

    copy = tmp_path / "copy"
    copy.write_bytes(CONTENT)
    file = RemoteFile("file", NOWHERE, digest, refuse)

    with pytest.raises(DownloadError, match="not the published file: not such a file"):
        file.store(copy)

    assert not cache.exists()
