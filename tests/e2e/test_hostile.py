"""Servers that do what no server should: each ends in one clear error in time, or costs nothing but time beside a mirror
that is in order."""
import concurrent.futures
import gzip
import json
import socket
import threading
import time

from harness import PATIENCE, equal, require, shards
from servers import Nginx, running
from test_remote import STREAM, dataset, stream


class Server:
    """Answers each request by answer(server, connection, method, path, headers); False ends the connection."""

    def __init__(self, files, answer, version="HTTP/1.1"):
        self.files, self.answer, self.version, self.redirects = files, answer, version, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        lines = connection.makefile("rb")
        try:
            while words := lines.readline(65536).decode("latin-1").split():
                headers = {}
                while field := lines.readline(65536).decode("latin-1").strip():
                    name, _, value = field.partition(":")
                    headers[name.lower()] = value.strip()
                lines.read(int(headers.get("content-length", 0)))
                if self.answer(self, connection, words[0], words[1], headers) is False:
                    break
        except (OSError, ValueError):
            pass
        connection.close()

    def content(self, path, headers):
        """Status, headers and data of a good answer."""
        data = self.files.get(path.rsplit("/", 1)[-1])
        if data is None:
            return 404, {}, b""
        wanted = headers.get("range", "").removeprefix("bytes=")
        if not wanted:
            return 200, {}, data
        first, _, last = wanted.partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        return 206, {"Content-Range": f"bytes {start}-{end}/{len(data)}"}, data[start:end + 1]

    def send(self, connection, status, headers, data=b"", length=True):
        headers = {**headers, **({"Content-Length": len(data)} if length else {})}
        head = f"{self.version} {status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
        connection.sendall(head.encode() + data)


# ---- answers ----


def slow_headers(server, connection, method, path, headers):
    for byte in b"HTTP/1.1 206 X\r\nX-Slow: " + b"x" * 1000:
        connection.sendall(bytes([byte]))
        time.sleep(0.2)


def trickle(server, connection, method, path, headers):
    status, more, data = server.content(path, headers)
    server.send(connection, status, {**more, "Content-Length": len(data)}, length=False)
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.2)


def trickle_shards(server, connection, method, path, headers):
    return (trickle if path.endswith(".zst") else good)(server, connection, method, path, headers)


def redirect_for_ever(server, connection, method, path, headers):
    server.redirects += 1
    server.send(connection, 302, {"Location": f"/{server.redirects}"})


def compressed(server, connection, method, path, headers):
    status, more, data = server.content(path, headers)
    server.send(connection, status, {**more, "Content-Encoding": "gzip"}, gzip.compress(data))


def without_ranges(server, connection, method, path, headers):
    server.send(connection, *server.content(path, {}))


def without_content_range(server, connection, method, path, headers):
    status, _, data = server.content(path, headers)
    server.send(connection, status, {}, data)


def web_page(server, connection, method, path, headers):
    server.send(connection, 200, {"Content-Type": "text/html"}, b"<html>Please sign in</html>")


def other_text(server, connection, method, path, headers):
    server.send(connection, 200, {"Content-Type": "text/plain"}, b"It works!")


def nothing(server, connection, method, path, headers):
    return False


def empty(server, connection, method, path, headers):
    server.send(connection, 200, {})


def large_headers(server, connection, method, path, headers):
    while True:
        connection.sendall(b"HTTP/1.1 206 X\r\n" + b"X: " + b"y" * 60000 + b"\r\n")


def manifest_without_end(server, connection, method, path, headers):
    if not path.endswith(".json"):
        return good(server, connection, method, path, headers)
    server.send(connection, 200, {"Transfer-Encoding": "chunked"}, length=False)
    while True:
        connection.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")


def manifest_of_a_gigabyte(server, connection, method, path, headers):
    if not path.endswith(".json"):
        return good(server, connection, method, path, headers)
    server.send(connection, 200, {"Content-Length": 1 << 30}, b" " * (1 << 20), length=False)


def another_manifest(server, connection, method, path, headers):
    status, more, data = server.content(path, headers)
    if path.endswith(".json"):
        manifest = json.loads(data)
        manifest["table"]["sha256"] = "0" * 64
        data = json.dumps(manifest).encode()
    server.send(connection, status, more, data)


def good(server, connection, method, path, headers):
    server.send(connection, *server.content(path, headers))


def good_in_chunks(server, connection, method, path, headers):
    status, more, data = server.content(path, headers)
    server.send(connection, status, {**more, "Transfer-Encoding": "chunked"}, length=False)
    for at in range(0, len(data), 50000):
        part = data[at:at + 50000]
        connection.sendall(b"%x\r\n" % len(part) + part + b"\r\n")
    connection.sendall(b"0\r\n\r\n")


def good_until_it_closes(server, connection, method, path, headers):
    server.send(connection, *server.content(path, headers), length=False)
    return False


BAD = {slow_headers: "no reply for", trickle: "only", trickle_shards: "only", redirect_for_ever: "too many redirects",
       compressed: "Content-Encoding", without_ranges: "does not honour ranges", without_content_range: "Content-Range",
       web_page: "HTML instead of data", other_text: "not a shardpack manifest", nothing: "Empty reply",
       empty: "without any bytes", large_headers: "eader", manifest_without_end: "bytes",
       manifest_of_a_gigabyte: "more than the 67108864 bytes", another_manifest: "SHA-256 mismatch"}


def test_bad_servers(case):
    local = dataset(case)
    files = {path.name: path.read_bytes() for path in local.iterdir()}
    want = stream(case, local)

    def one(answer, text, right):
        with running(Server(files, answer)) as bad, running(Server(files, good)) as other:
            done = case.refused(f"*{text}*", "stream", *STREAM, "--deadline", "5", bad.url + "/set", timeout=PATIENCE)
            require(bad.url in done.text or ".zst: " in done.text, "%s: %s", answer.__name__, done.text)
            equal(len(done.text.splitlines()), 1, answer.__name__)
            have = stream(case, bad.url + "/set", "-w", right, "--mirror", other.url + "/set")
            equal(have, want, f"{answer.__name__}, with a mirror that is in order")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(one, *row, n % 3) for n, row in enumerate(BAD.items())]:
            done.result()


def test_two_pages_do_not_outvote_a_manifest(case):
    local = dataset(case)
    files = {path.name: path.read_bytes() for path in local.iterdir()}
    with running(*(Server(files, answer) for answer in (other_text, other_text, good))) as (a, b, right):
        have = stream(case, a.url + "/set", "--mirror", b.url + "/set", "--mirror", right.url + "/set")
        equal(have, stream(case, local), "from the third")


def test_odd_servers(case):
    """Old or unusual, but right."""
    local = dataset(case)
    files = {path.name: path.read_bytes() for path in local.iterdir()}
    want = stream(case, local)
    for answer, version in ((good_in_chunks, "HTTP/1.1"), (good_until_it_closes, "HTTP/1.0"),
                            (good_until_it_closes, "HTTP/1.1")):
        with running(Server(files, answer, version)) as odd:
            equal(stream(case, odd.url + "/set", "-w", 2), want, f"{answer.__name__}, {version}")


# ---- where to send ----


def refuses(status):
    def answer(server, connection, method, path, headers):
        if method == "PUT":
            server.send(connection, status, {"Location": "/other"})
        else:
            connection.sendall(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")
    return answer


def puts_nothing_through(server, connection, method, path, headers):
    if method == "PUT":
        time.sleep(3600)
    connection.sendall(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")


REFUSED = {405: "can only be read from", 501: "can only be read from", 401: "user and password", 403: "may not write",
           413: "no object of this size", 507: "no space", 301: "redirects are not followed", 500: "HTTP 500"}


def test_places_that_take_nothing(case):
    local = dataset(case)

    def one(answer, text):
        with running(Server({}, answer)) as place:
            done = case.refused(f"*PUT: {text}*", "mirror", "-q", "--deadline", "5", local, place.url + "/set", timeout=PATIENCE)
            equal(len(done.text.splitlines()), 1, text)

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(one, refuses(status), f"HTTP {status}*{text}" if text[:4] != "HTTP" else text)
                for status, text in REFUSED.items()]
        jobs.append(pool.submit(one, puts_nothing_through, "the server stalls"))
        for job in jobs:
            job.result()


def test_shard_by_url_has_its_deadline(case):
    local = dataset(case)
    with running(Server({}, slow_headers)) as stuck:
        url = f"{stuck.url}/{shards(local)[0].name}"
        for command in ("ls", "verify"):
            case.refused("*the deadline has passed*", command, "--deadline", "1", url, timeout=PATIENCE)
        for command in (["ls"], ["ls", "-l"], ["info"], ["verify"], ["cat"], ["extract"]):
            more = {"cat": ["x.jpg"], "extract": [case.dir / "out"]}.get(command[0], [])
            case.refused("*mirrors are for a dataset*", *command, "--mirror", stuck.url, url, *more)


def test_cache_that_cannot_be_written(case):
    """One warning, and the batches."""
    local, cache = dataset(case), case.dir / "cache"
    (cache / "shardpack-cache-1/account").mkdir(parents=True)
    with running(Nginx(case, local.parent)) as web:
        done = case.run(case.command, "stream", "-v", *STREAM, "-w", "2", "--cache-dir", cache, web.url + "/set", check=True)
        equal(done.out, stream(case, local), "batches")
        equal(len([line for line in done.text.splitlines() if "cache cannot be written" in line]), 1, done.text)
    (case.dir / "file").write_text("x")
    for place, text in ((case.dir / "file", "Not a directory"), (case.dir / "no/such", "No such file or directory")):
        case.refused(f"*cache folder {place}*: {text}", "ls", "--cache-dir", place, "http://127.0.0.1:1/x")
