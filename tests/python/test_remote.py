"""Datasets by URL, from a small server of our own."""
import contextlib
import http.server
import pathlib
import pickle
import re
import signal
import sys
import threading

import pytest
from conftest import contents, loader, run_script

import shardpack

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from s3_stand_in import S3StandIn  # noqa: E402


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        name = self.path.partition("?")[0].lstrip("/")
        answer = server.spoil(name) if server.spoil else None
        path = server.root / name
        if isinstance(answer, int) or not path.is_file():
            return self.reply(answer or 404, b"no")
        data = path.read_bytes()
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not found:
            return self.reply(200, data)
        first = int(found[1]) if found[1] else max(0, len(data) - int(found[2]))
        last = min(int(found[2]) if found[1] and found[2] else len(data) - 1, len(data) - 1)
        server.ranges.append((name, first, last))
        body = bytearray(data[first:last + 1])
        if answer == "flip":
            body[len(body) // 2] ^= 1
        return self.reply(206, bytes(body), ("Content-Range", f"bytes {first}-{last}/{len(data)}"))

    def reply(self, status, body, *headers):
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder. spoil(name): a status to answer with, "flip", or None."""

    daemon_threads = True
    request_queue_size = 128  # connections beyond it are tried again after a second

    def handle_error(self, *_):
        """Who was interrupted reads no answer."""

    def __init__(self, root, spoil=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.spoil, self.ranges = pathlib.Path(root), spoil, []
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def serve(data):
    with contextlib.ExitStack() as stack:
        def start(spoil=None, folder=data):
            server = Server(folder, spoil)
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return server
        yield start


@pytest.mark.parametrize("workers", [0, 2])
def test_the_same_batches(data, serve, workers):
    with loader(data) as local, loader(serve().url, num_workers=workers) as remote:
        assert contents(remote) == contents(local)
        assert len(remote.dataset) == 160 and remote.dataset[17].key == local.dataset[17].key
        assert "mirrors" not in local.stats() and "cache_hits" not in local.stats()
        stats = remote.stats()
        assert len(stats["mirrors"]) == 1
        mirror = stats["mirrors"][0]
        assert mirror["bytes"] > 0 and mirror["requests"] > 0 and 0 < mirror["latency_p50"] <= mirror["latency_p99"]
        assert mirror["failovers"] == mirror["wrong_bytes"] == mirror["missing"] == mirror["server_errors"] == 0


def test_mirrors(data, serve):
    good = serve()
    liar, gone, down = serve(lambda name: "flip"), serve(lambda name: 404), serve(lambda name: 500)
    for bad, cause in ((liar, "wrong_bytes"), (gone, "missing"), (down, "server_errors")):
        with loader(data) as local, loader([bad.url, good.url]) as remote:
            assert contents(remote) == contents(local)
            stats = {mirror["url"]: mirror for mirror in remote.stats()["mirrors"]}
            assert stats[bad.url][cause] > 0 and stats[good.url]["bytes"] > 0, stats
            codes = {"missing": {404}, "server_errors": {500}}.get(cause, set())
            assert set(stats[bad.url]["codes"]) == codes and stats[good.url]["codes"] == {}, stats
            assert sum(stats[bad.url]["codes"].values()) == (stats[bad.url][cause] if codes else 0), stats
            assert not any(stats[good.url][name] for name in ("wrong_bytes", "missing", "server_errors"))
    for opened in (shardpack.Dataset([gone.url, good.url]), shardpack.Dataset((good.url, gone.url))):
        assert opened[3].key == shardpack.Dataset(data)[3].key
    assert shardpack.verify([good.url, gone.url]).samples == 160


def test_all_fail(serve):
    first, second = serve(lambda name: 500), serve(lambda name: 403)
    with pytest.raises(shardpack.Error, match="deadline") as told:
        loader([first.url, second.url], deadline=3)
    for part in (first.url, second.url, "500", "403"):
        assert part in str(told.value)
    assert isinstance(told.value, OSError)


def test_cache(data, serve, tmp_path):
    web, cache = serve(), tmp_path / "cache"
    with loader(data) as local, loader(web.url, cache_dir=cache, cache_limit="1GB") as remote:
        want = [contents(local), contents(local)]
        assert contents(remote) == want[0]
        # The server hears of a hedged request late, perhaps: what counts is what was sent, and that all comes without it.
        web.spoil = lambda name: 404 if name.endswith(".zst") else None
        sent = remote.stats()["mirrors"][0]["requests"]
        assert contents(remote) == want[1]
        stats = remote.stats()
        assert stats["mirrors"][0]["requests"] == sent, "the second epoch is in the cache"
        assert stats["cache_hits"] > 0 and stats["cache_hit_bytes"] > 0 and stats["cache_misses"] > 0
    assert shardpack.Dataset(web.url, cache_dir=str(cache))[100].key == shardpack.Dataset(data)[100].key
    assert shardpack.verify(web.url, cache_dir=cache)


def test_few_of_many_samples(photos, serve, tmp_path):
    """Frames without a chosen sample are not fetched."""
    few = list(range(5, 160, 40))
    shardpack.pack(photos, tmp_path / "ds", frame_samples=2)
    web = serve(folder=tmp_path / "ds")
    for shuffle in (True, False):
        with loader(tmp_path / "ds", shuffle=shuffle, indices=few) as local, \
                loader(web.url, shuffle=shuffle, indices=few) as remote:  # fmt: skip
            assert contents(remote) == contents(local)
        fetched = sum(last + 1 - first for _, first, last in set(web.ranges))  # a slow one may be asked for twice
        assert 0 < fetched < shardpack.Dataset(web.url).stat()["bytes"] / 8, fetched
        web.ranges.clear()


def test_cache_of_the_environment(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("SHARDPACK_CACHE_DIR", str(tmp_path / "cache"))
    web = serve()
    shardpack.Dataset(web.url, cache_dir="")[0]
    assert not (tmp_path / "cache").exists()
    shardpack.Dataset(web.url)[0]
    assert (tmp_path / "cache").exists()


def test_verify(serve):
    assert shardpack.verify(serve().url)
    assert not shardpack.verify(serve(lambda name: "flip" if name.endswith(".zst") else None).url, deadline=1)


def test_s3(data, monkeypatch):
    store = S3StandIn({"KEY": ("SECRET", None)})
    for path in pathlib.Path(data).iterdir():
        if path.is_file():
            store.objects[f"bucket/set/{path.name}"] = (path.read_bytes(), '"x"')
    for name, value in (("AWS_ENDPOINT_URL", store.url), ("AWS_ACCESS_KEY_ID", "KEY"), ("AWS_SECRET_ACCESS_KEY", "SECRET"),
                        ("AWS_EC2_METADATA_DISABLED", "true")):  # fmt: skip
        monkeypatch.setenv(name, value)
    try:
        with pytest.raises(ValueError, match="unencrypted"):
            loader("s3://bucket/set")
        with loader(data) as local, loader("s3://bucket/set", plain_credentials=True) as remote:
            assert contents(remote) == contents(local)
    finally:
        store.stop()


def test_shard_dataset(data, serve):
    torch = pytest.importorskip("torch")
    pytest.importorskip("PIL")
    options = {"batch_size": 16, "shuffle": True, "decode": "array", "transform": lambda image: image[:8, :8].copy()}
    gone, good = serve(lambda name: 404), serve()
    remote = shardpack.ShardDataset([gone.url, good.url], **options)
    local = shardpack.ShardDataset(data, **options)
    assert len(remote) == len(local)
    for workers in (0, 2):
        parts = [contents(torch.utils.data.DataLoader(each, batch_size=None, num_workers=workers))
                 for each in (remote, local)]
        assert parts[0] == parts[1]


@pytest.mark.parametrize("arguments, kind, text", [
    ((["http://x/a", "/tmp"], {}), ValueError, "several places must be URLs"),
    (([], {}), ValueError, "path_or_urls=.* must not be empty"),
    (("http://x/a", {"deadline": 0}), ValueError, "deadline=0"),
    (("http://x/a", {"deadline": "1"}), TypeError, "deadline='1'"),
    (("http://x/a", {"cache_limit": "lots"}), ValueError, "cache_limit='lots'"),
    (("http://x/a", {"cache_limit": 0}), ValueError, "cache_limit=0"),
    (("http://x/a", {"cache_limit": "1GB"}), ValueError, "cache_limit: there is no cache"),
    (("http://x/a", {"plain_credentials": 1}), TypeError, "plain_credentials=1"),
    (("http://user:hunter2@x/a", {}), ValueError, "unencrypted"),
])  # fmt: skip
def test_arguments(arguments, kind, text):
    place, options = arguments
    for use in (lambda: loader(place, **options), lambda: shardpack.Dataset(place, **options),
                lambda: shardpack.verify(place, **options)):  # fmt: skip
        with pytest.raises(kind, match=text) as told:
            use()
        assert "hunter2" not in str(told.value)


def test_secrets_are_not_shown(serve):
    url = serve().url.replace("//", "//someone:pass-word@") + "?token=hidden"
    opened = shardpack.Dataset(url, plain_credentials=True)
    with loader(url, plain_credentials=True, num_workers=1) as batches:
        texts = [repr(opened), repr(batches), repr(opened[:3]), str(batches.stats())]
        assert pickle.loads(pickle.dumps(opened))[5].key == opened[5].key
    assert not any(secret in text for text in texts for secret in ("someone", "pass-word", "hidden")), texts


WAITS = [  # what never comes, and what waits for it
    ("manifest.json", "shardpack.Dataset(url, deadline=3600)"),
    ("tsv", "shardpack.Dataset(url, deadline=3600)"),
    ("manifest.json", "shardpack.Loader(url, deadline=3600, batch_size=16, num_workers=1)"),
    ("zst", "shardpack.Dataset(url, deadline=3600)[7]"),
    ("zst", "shardpack.Dataset(url, deadline=3600)['beach/none']"),
    ("zst", "next(iter(shardpack.Loader(url, deadline=3600, batch_size=16, num_workers=1, output='numpy')))"),
    ("zst", "next(iter(shardpack.Loader(url, deadline=3600, batch_size=16, num_workers=0, output='numpy')))"),
    ("manifest.json", "shardpack.verify(url, deadline=3600)"),
    ("zst", "shardpack.verify(url, deadline=3600)"),
]


def test_ctrl_c_ends_every_wait(serve):
    """The deadline is far away."""
    over = threading.Event()
    webs = {end: serve(lambda path, end=end: over.wait(3600) and None if path.endswith(end) else None)
            for end in ("manifest.json", "tsv", "zst")}
    calls = "".join(f"lambda url={webs[end].url!r}: {call}, " for end, call in WAITS)
    told = run_script(f"""
        import os, signal, threading
        import shardpack
        for number, call in enumerate([{calls}]):
            try:
                threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
                call()
                print(number, "did not wait")
            except KeyboardInterrupt:
                pass
        print("all")
    """)
    over.set()
    assert told == "all\n"


def test_after_ctrl_c_without_workers(data, serve):
    """What was cancelled is as it was before."""
    over = threading.Event()
    web = serve(lambda path: over.wait(60) and None if path.endswith("zst") else None)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with loader(data) as local, loader(web.url, num_workers=0) as remote:
            want = contents(local)
            for _ in range(2):
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                with pytest.raises(KeyboardInterrupt):
                    next(iter(remote))
            over.set()
            assert contents(remote) == want
    finally:
        signal.signal(signal.SIGALRM, before)
