"""Downloads and local copies of published files, and the cache that holds them."""

import gzip
import hashlib
import math
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hpobench_ordered.data import download as _download
from hpobench_ordered.data.download import OFFLINE_VARIABLE
from hpobench_ordered.data.remote import CACHE_VARIABLE, RemoteFile
from hpobench_ordered.errors import ArtifactError, DownloadError, NotFetchedError
from hpobench_ordered.generation._openml.client import openml_client

# Downloads use the real client, and a server on the loopback interface.
CONTENT = b"published " * 20_000
"""Content of the published file, larger than what is read at once."""
HASH_OF_CONTENT = hashlib.sha256(CONTENT).hexdigest()
UNREACHABLE_URL = "http://127.0.0.1:9/file"
"""An address where no server answers."""

requested_paths: list[str] = []
"""What the server was asked for in a test, such as "/good"."""


NUMBER_OF_FAILURES = {"/cut": math.inf, "/always-busy": math.inf, "/busy": 2}
"""How many requests of a path fail, the first ones."""


class Handler(BaseHTTPRequestHandler):
    """Serves the published file in the way that the path says.

    The file is whole at "/good", to which "/to-good" redirects. At "/cut" it lacks its last byte.
    The server refuses twice to send "/busy", and "/always-busy" each time. There is nothing else.
    """

    def do_GET(self) -> None:
        """Answer a request as the class says; some paths fail only at first."""
        earlier_requests = requested_paths.count(self.path)
        requested_paths.append(self.path)
        number_of_failures = NUMBER_OF_FAILURES.get(self.path, 0)
        if earlier_requests < number_of_failures:
            self.fail()
        elif self.path in ("/good", "/busy"):
            self.send_file(CONTENT)
        elif self.path == "/to-good":
            self.send_response(HTTPStatus.FOUND)  # a redirection
            self.send_header("Location", "/good")
            self.end_headers()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def fail(self) -> None:
        """Send all but the last byte of the file, or refuse to send it, as the path says."""
        if "cut" in self.path:
            self.send_file(CONTENT[:-1])
        else:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE)

    def send_file(self, data: bytes) -> None:
        """Send data after a header that announces the length of the whole file."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    """Address of a server that answers as `Handler` says, such as "http://127.0.0.1:50000"."""
    any_free_port = 0
    instance = ThreadingHTTPServer(("127.0.0.1", any_free_port), Handler)
    thread = threading.Thread(target=instance.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{instance.server_port}"
    instance.shutdown()
    thread.join()
    instance.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of the cache, which does not exist yet; downloads are permitted.

    Failed downloads are tried again at once.
    """
    requested_paths.clear()  # of other tests
    monkeypatch.delenv(OFFLINE_VARIABLE, raising=False)
    monkeypatch.setattr(_download, "FIRST_PAUSE", 0.0)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def list_cache(cache: Path) -> list[str]:
    """Paths of the files in the cache, relative to its folder."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", ["/good", "/to-good"])
def test_downloaded_file_is_in_cache(server, cache, path):
    """The file is at the URL itself, or the server redirects to where it is."""
    file = RemoteFile("folder/file", server + path, HASH_OF_CONTENT)

    file.download()

    assert file.open_path().read_bytes() == CONTENT
    assert list_cache(cache) == ["folder/file"]


def test_download_reports_its_progress(server):
    """Reports are the number of bytes received so far, and that of the whole file."""
    reports: list[tuple[int, int]] = []
    file = RemoteFile("folder/file", f"{server}/good", HASH_OF_CONTENT)

    file.download(progress=lambda received, whole: reports.append((received, whole)))

    assert reports == sorted(reports)  # they never go back
    assert reports[-1] == (len(CONTENT), len(CONTENT))


def test_file_must_be_fetched_before_opening():
    """Opening a file looks for it in the cache, and never downloads it."""
    file = RemoteFile("folder/file", UNREACHABLE_URL, HASH_OF_CONTENT)

    with pytest.raises(NotFetchedError, match="folder/file"):
        file.open_path()


@pytest.mark.parametrize(
    ("path", "expected_hash", "message"),
    [
        ("/good", "0" * 64, r"^http://127.*/good is not the published file"),
        ("/missing", HASH_OF_CONTENT, "404"),
        ("/always-busy", HASH_OF_CONTENT, r"503.*--from"),
        ("/cut", None, "cannot download"),
    ],
)
def test_failed_download_leaves_no_file(server, cache, path, expected_hash, message):
    """The file has another hash or is missing, the server is busy, or the connection breaks."""
    file = RemoteFile("file", server + path, expected_hash)

    with pytest.raises(DownloadError, match=message):
        file.download()

    assert list_cache(cache) == []


def test_missing_file_is_requested_once(server):
    """Unlike a busy server, a missing file is not tried again."""
    file = RemoteFile("file", f"{server}/missing", HASH_OF_CONTENT)

    with pytest.raises(DownloadError, match="404"):
        file.download()

    assert requested_paths == ["/missing"]


def test_url_without_server_is_refused(cache):
    file = RemoteFile("file", UNREACHABLE_URL, HASH_OF_CONTENT)

    with pytest.raises(DownloadError, match=r"cannot download.*--from"):
        file.download()

    assert list_cache(cache) == []


def test_passing_failures_are_tried_again(server, cache):
    """The server refuses the first two requests of "/busy"."""
    file = RemoteFile("file", f"{server}/busy", HASH_OF_CONTENT)

    file.download()

    assert file.open_path().read_bytes() == CONTENT
    assert len(requested_paths) == 3
    assert list_cache(cache) == ["file"]


def test_nothing_is_downloaded_offline(server, cache, monkeypatch):
    """The user has forbidden downloads; the message says how to use a local copy."""
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    file = RemoteFile("file", f"{server}/good", HASH_OF_CONTENT)

    with pytest.raises(DownloadError, match=r"OFFLINE is set.*fetch fcnet --from"):
        file.download(benchmark="fcnet")

    assert list_cache(cache) == []
    assert requested_paths == []


def test_openml_is_not_asked_offline(monkeypatch):
    """The user has forbidden downloads, so that no client for OpenML is made."""
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")

    with pytest.raises(DownloadError, match="OFFLINE is set"), openml_client("a data set"):
        pytest.fail("there must be no client")


def test_offline_zero_permits_downloads(server, cache, monkeypatch):
    """A variable of "0" counts as one that is not set."""
    monkeypatch.setenv(OFFLINE_VARIABLE, "0")

    RemoteFile("file", f"{server}/good", HASH_OF_CONTENT).download()

    assert list_cache(cache) == ["file"]


@pytest.mark.parametrize("name", ["copy", "copy.gz"])
def test_copy_of_other_content_is_refused(tmp_path, cache, name):
    """The user's copy has another hash than the published file.

    One that is called copy.gz is not even compressed.
    """
    copy = tmp_path / name
    copy.write_bytes(b"something else")

    with pytest.raises(DownloadError):
        RemoteFile("file", UNREACHABLE_URL, HASH_OF_CONTENT).store(copy)

    assert not cache.exists()


def test_cache_must_be_a_folder(tmp_path, monkeypatch):
    """The user's variable names a file as the cache: here the very copy that is to be stored."""
    copy = tmp_path / "copy"
    copy.write_bytes(CONTENT)
    monkeypatch.setenv(CACHE_VARIABLE, str(copy))

    with pytest.raises(ArtifactError, match=f"cannot write to the cache .*{CACHE_VARIABLE}"):
        RemoteFile("file", UNREACHABLE_URL, HASH_OF_CONTENT).store(copy)


def store_copy(folder: Path, *, published_hash: str | None, content: bytes = CONTENT) -> RemoteFile:
    """Put a copy of a published file from a folder into the cache, and return the file.

    Where no hash is published, that of the copy is recorded in the cache.
    """
    copy = folder / "copy"
    copy.write_bytes(content)
    file = RemoteFile("file", UNREACHABLE_URL, published_hash)
    file.store(copy)
    return file


def test_compressed_local_copy_is_unpacked(tmp_path):
    """A copy whose name ends in .gz is stored unpacked, as the published file is."""
    copy = tmp_path / "copy.gz"
    copy.write_bytes(gzip.compress(CONTENT))
    file = RemoteFile("file", UNREACHABLE_URL, HASH_OF_CONTENT)

    file.store(copy)

    assert file.open_path().read_bytes() == CONTENT


WITH_OR_WITHOUT_HASH = pytest.mark.parametrize("published_hash", [HASH_OF_CONTENT, None])
"""Where the publisher states no hash, that of the first content is recorded in the cache."""


@WITH_OR_WITHOUT_HASH
def test_local_copy_is_stored(tmp_path, published_hash):
    """With and without a published hash, a local copy stands in for the download."""
    file = store_copy(tmp_path, published_hash=published_hash)

    assert file.open_path().read_bytes() == CONTENT


@WITH_OR_WITHOUT_HASH
def test_damage_in_cache_is_noticed(tmp_path, published_hash):
    """A file in the cache is checked by its hash when it is opened; it lacks its last byte here."""
    file = store_copy(tmp_path, published_hash=published_hash)
    file.path.write_bytes(CONTENT[:-1])

    with pytest.raises(ArtifactError, match="damaged"):
        file.open_path()


def test_other_content_of_unpinned_file_is_refused(tmp_path, cache):
    """Without a published hash, that of the first content is recorded, and counts from then on.

    It is kept beside the file, and stays when the file is deleted.
    """
    file = store_copy(tmp_path, published_hash=None)
    file.path.unlink()

    with pytest.raises(DownloadError, match=r"first fetched .* delete .*file\.sha256"):
        store_copy(tmp_path, published_hash=None, content=b"other")

    assert list_cache(cache) == ["file.sha256"]


def test_first_content_is_accepted_again(tmp_path):
    """Without a published hash, that of the first content is recorded, and counts from then on.

    The file is deleted, and then stored again with the same content.
    """
    first_file = store_copy(tmp_path, published_hash=None)
    first_file.path.unlink()

    file = store_copy(tmp_path, published_hash=None)

    assert file.open_path().read_bytes() == CONTENT


@WITH_OR_WITHOUT_HASH
@pytest.mark.parametrize("error", [ValueError, ArtifactError])
def test_content_is_checked_before_it_is_stored(tmp_path, cache, published_hash, error):
    """A published file may come with a function that checks content, here one that refuses all."""

    def refuse(content: bytes) -> None:
        assert content == CONTENT
        raise error("not such a file")

    copy = tmp_path / "copy"
    copy.write_bytes(CONTENT)
    file = RemoteFile("file", UNREACHABLE_URL, published_hash, check=refuse)

    with pytest.raises(DownloadError, match="not the published file: not such a file"):
        file.store(copy)

    assert not cache.exists()
