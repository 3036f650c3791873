"""Fetching, against a server on the loopback interface through the real client."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hpobench_ordered.errors import ArtifactError, DownloadError, NotFetchedError
from hpobench_ordered.remote import CACHE_VARIABLE, RemoteFile, cache_folder

CONTENT = b"published " * 20_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """/good serves the file, /cut stops in the middle, anything else is not found."""

    def do_GET(self) -> None:
        if self.path not in ("/good", "/cut"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT if self.path == "/good" else CONTENT[:1000])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    instance = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=instance.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{instance.server_port}"
    instance.shutdown()
    thread.join()
    instance.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def in_cache(cache: Path) -> list[str]:
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_file())


def test_download(server: str, cache: Path) -> None:
    file = RemoteFile("folder/file", f"{server}/good", DIGEST)
    with pytest.raises(NotFetchedError, match="folder/file"):
        file.open_path()
    file.download()
    assert file.open_path().read_bytes() == CONTENT
    assert in_cache(cache) == ["folder/file"]


def test_progress(server: str) -> None:
    class Bar:
        total = 0
        done = 0

        def update(self, size: int) -> None:
            self.done += size

        def reset(self) -> None:
            self.done = 0

        def close(self) -> None:
            pass

    bar = Bar()
    RemoteFile("file", f"{server}/good", DIGEST).download(progress=bar)
    assert bar.total == len(CONTENT)


@pytest.mark.parametrize(
    ("path", "digest", "message"),
    [
        ("/good", "0" * 64, "is not the published"),
        ("/missing", DIGEST, "HTTP 404"),
        ("/cut", DIGEST, "cannot download|not the published"),
    ],
)
def test_nothing_is_kept_of_a_failed_download(
    server: str, cache: Path, path: str, digest: str, message: str
) -> None:
    file = RemoteFile("file", server + path, digest)
    with pytest.raises(DownloadError, match=message):
        file.download()
    assert in_cache(cache) == []


def test_no_network() -> None:
    with pytest.raises(DownloadError, match=r"no connection.*--from"):
        RemoteFile("file", "http://127.0.0.1:9/file", DIGEST).download()


@pytest.mark.parametrize("compressed", [False, True])
def test_local_copy(tmp_path: Path, compressed: bool) -> None:
    copy = tmp_path / ("copy.gz" if compressed else "copy")
    copy.write_bytes(gzip.compress(CONTENT) if compressed else CONTENT)
    file = RemoteFile("file", "http://127.0.0.1:9/file", DIGEST)
    file.store(copy)
    assert file.open_path().read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["copy", "copy.gz"])
def test_another_file_is_no_local_copy(tmp_path: Path, cache: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(DownloadError):
        RemoteFile("file", "http://127.0.0.1:9/file", DIGEST).store(tmp_path / name)
    assert not cache.exists()


def test_damage_in_the_cache_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "copy").write_bytes(CONTENT)
    for digest in (DIGEST, None):
        file = RemoteFile("file", "http://127.0.0.1:9/file", digest)
        file.store(tmp_path / "copy")
        assert file.open_path().read_bytes() == CONTENT
        file.path.write_bytes(CONTENT[:-1])
        with pytest.raises(ArtifactError, match="damaged"):
            file.open_path()


def test_only_the_first_content_of_an_unpinned_file_is_accepted(
    tmp_path: Path, cache: Path
) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    first.write_bytes(CONTENT)
    other.write_bytes(b"other")
    file = RemoteFile("file", "http://127.0.0.1:9/file", None)
    file.store(first)
    file.path.unlink()
    with pytest.raises(DownloadError, match=r"first fetched .* delete .*file\.sha256"):
        file.store(other)
    assert in_cache(cache) == ["file.sha256"]
    file.store(first)
    assert file.open_path().read_bytes() == CONTENT
    (cache / "file.sha256").unlink()
    with pytest.raises(ArtifactError, match="no recorded hash; delete it"):
        file.open_path()
    file.store(other)
    assert file.open_path().read_bytes() == b"other"


@pytest.mark.parametrize("digest", [DIGEST, None])
@pytest.mark.parametrize("error", [ValueError, ArtifactError])
def test_content_is_checked_before_it_is_stored(
    tmp_path: Path, cache: Path, digest: str | None, error: type[Exception]
) -> None:
    def refuse(data: bytes) -> None:
        assert data == CONTENT
        raise error("not such a file")

    (tmp_path / "copy").write_bytes(CONTENT)
    file = RemoteFile("file", "http://127.0.0.1:9/file", digest, refuse)
    with pytest.raises(DownloadError, match="not the published file: not such a file"):
        file.store(tmp_path / "copy")
    assert not cache.exists()


def test_a_wrong_download_is_named_by_its_address(server: str) -> None:
    with pytest.raises(DownloadError, match=f"^{server}/good is not the published file"):
        RemoteFile("file", f"{server}/good", "0" * 64).download()


def test_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "copy").write_bytes(CONTENT)
    (tmp_path / "file").write_bytes(b"in the way")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(ArtifactError, match="cannot write to the cache"):
        RemoteFile("file", "http://127.0.0.1:9/file", DIGEST).store(tmp_path / "copy")


def test_default_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE)
    assert cache_folder().name == "hpobench_ordered"
