#!/usr/bin/env python3
"""A web server's bad days: stands before a real server on loopback and injects faults, seeded.

As a program: fault_proxy.py HOST:PORT [--faults a,b] [--rate P] [--seed N] [--latency MS] [--bandwidth BYTES/S]
prints its port and serves until its standard input ends. As a module: FaultProxy(...) with the same options; .port,
.log (a dict per request), .stop().
"""
import argparse
import http.client
import random
import socket
import sys
import threading
import time

FAULTS = """latency throttle stall reset truncate wronglength wrongrange flip 301 302 307 401 403 404 416 429 500 503 etag
html slowtls garbage""".split()


class FaultProxy:
    def __init__(self, upstream, faults=FAULTS, rate=1.0, seed=0, latency=0.0, bandwidth=0, redirect=None, retry_after=1,
                 stall=60.0, only=None, host="127.0.0.1"):
        """latency: seconds added to each request (and to each connection); redirect: where 30x point to, else to
        itself; only: a function of the path that tells whether a request may be spoilt."""
        self.upstream, self.faults, self.rate = upstream, list(faults), rate
        self.random, self.latency, self.bandwidth = random.Random(seed), latency, bandwidth
        self.redirect, self.retry_after, self.stall, self.only = redirect, retry_after, stall, only
        self.deck = []  # faults still to come before one comes again, so that a seed cannot leave one out
        self.log, self.lock, self.closing, self.connections = [], threading.Lock(), False, 0
        self.listener = socket.create_server((host, 0), backlog=256)
        self.host, self.port = host, self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def stop(self):
        self.closing = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def _accept(self):
        while not self.closing:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _pick(self, path):
        with self.lock:
            if self.faults and (self.only is None or self.only(path)) and self.random.random() < self.rate:
                self.deck = self.deck or self.random.sample(self.faults, len(self.faults))
                return self.deck.pop(), self.random.random()
            return None, self.random.random()

    def _serve(self, connection):
        upstream = None
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.latency:
                time.sleep(self.latency)  # the handshake
            reader = connection.makefile("rb")
            upstream = http.client.HTTPConnection(*self.upstream, timeout=60)
            while not self.closing and self._one(connection, reader, upstream):
                pass
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            if upstream:
                upstream.close()
            connection.close()

    def _one(self, connection, reader, upstream):
        line = reader.readline(65536).decode("latin-1").split()
        if len(line) != 3:
            return False
        method, path = line[:2]
        headers = {}
        while True:
            field = reader.readline(65536).decode("latin-1").strip()
            if not field:
                break
            name, _, value = field.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = reader.read(int(headers.get("content-length", 0) or 0))
        fault, chance = self._pick(path)
        with self.lock:
            self.log.append({"method": method, "path": path, "fault": fault, "range": headers.get("range"),
                             "headers": headers, "time": time.monotonic()})
        if self.latency:
            time.sleep(self.latency)
        if fault == "latency":
            time.sleep(0.05 + 0.4 * chance)
        elif fault == "stall" and chance < 0.5:
            time.sleep(self.stall)
            return False
        elif fault == "reset" and chance < 0.3:
            return self._reset(connection)
        elif fault == "garbage":
            connection.sendall(b"\x00\xff\x17HTPT/9.9 nonsense\r\n\x80\x81: \x00\r\n\r\n")
            return False
        elif fault in ("301", "302", "307"):
            to = (self.redirect or self.url) + path
            return self._plain(connection, int(fault), b"moved", [("Location", to)])
        elif fault in ("401", "403", "404", "416", "500"):
            return self._plain(connection, int(fault), b"<html><body>%s</body></html>" % fault.encode())
        elif fault in ("429", "503"):
            return self._plain(connection, int(fault), b"slow down", [("Retry-After", str(self.retry_after))])
        elif fault == "html":
            return self._plain(connection, 206 if "range" in headers else 200,
                               b"<html><body>Please sign in</body></html>", [("Content-Type", "text/html")])
        elif fault == "slowtls":
            time.sleep(0.3 + chance)  # whatever takes long before the first byte
        return self._forward(connection, upstream, method, path, headers, body, fault, chance)

    def _reset(self, connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return False

    def _plain(self, connection, status, body, headers=()):
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"] + [f"{k}: {v}" for k, v in headers]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return True

    def _forward(self, connection, upstream, method, path, headers, body, fault, chance):
        forwarded = {k: v for k, v in headers.items() if k != "connection"}
        if fault == "wrongrange" and "range" in headers and "-" in headers["range"][7:]:
            first, _, last = headers["range"][6:].partition("-")
            if first and last and int(first) > 0:
                forwarded["range"] = f"bytes={int(first) - 1}-{int(last) - 1}"
        upstream.request(method, path, body or None, forwarded)
        reply = upstream.getresponse()
        data = bytearray(reply.read())
        length = len(data)
        out = [(k, v) for k, v in reply.getheaders()
               if k.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive")]
        if method == "HEAD":
            length = int(reply.getheader("Content-Length") or 0)
        if fault == "flip" and data:
            data[int(chance * len(data))] ^= 0x40
        elif fault == "wronglength":
            out = [(k, v.rsplit("/", 1)[0] + "/12345678" if k.lower() == "content-range" else v) for k, v in out]
        elif fault == "etag":
            out = [(k, '"changed-%d"' % int(chance * 1e9) if k.lower() == "etag" else v) for k, v in out]
        head = f"HTTP/1.1 {reply.status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in out)
        connection.sendall((head + f"Content-Length: {length}\r\n\r\n").encode("latin-1"))
        cut = int(chance * len(data)) if fault in ("truncate", "reset", "stall") else len(data)
        self._send(connection, bytes(data[:cut]), 200_000 if fault == "throttle" else self.bandwidth)
        if fault == "stall":
            time.sleep(self.stall)
        if fault == "reset":
            return self._reset(connection)
        return cut == len(data) and not reply.will_close

    def _send(self, connection, data, bandwidth):
        step = max(bandwidth // 20, 1) if bandwidth else max(len(data), 1)
        for at in range(0, len(data), step):
            connection.sendall(data[at:at + step])
            if bandwidth:
                time.sleep(0.05)


class SlowHandshake:
    """Relays connections to a TLS server as they are, and holds back what the server says first: the handshake takes
    wait(n) seconds for connection n."""

    def __init__(self, upstream, wait, host="127.0.0.1"):
        self.upstream, self.wait, self.host, self.connections = upstream, wait, host, 0
        self.listener = socket.create_server((host, 0), backlog=256)
        self.port, self.ended = self.listener.getsockname()[1], threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"https://{self.host}:{self.port}"

    def stop(self):
        self.ended.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def _accept(self):
        while not self.ended.is_set():
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.upstream)
            except OSError:
                return
            delay = self.wait(self.connections)
            self.connections += 1
            threading.Thread(target=self._copy, args=(client, server, 0), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, delay), daemon=True).start()

    def _copy(self, source, target, delay):
        try:
            while data := source.recv(1 << 16):
                self.ended.wait(delay)
                delay = 0
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("upstream", metavar="HOST:PORT")
    parser.add_argument("--faults", default="", help="comma-separated, or all: " + " ".join(FAULTS))
    parser.add_argument("--rate", type=float, default=1.0, help="share of requests that are spoilt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, metavar="MS")
    parser.add_argument("--bandwidth", type=int, default=0, metavar="BYTES/S")
    options = parser.parse_args()
    host, _, port = options.upstream.partition(":")
    faults = FAULTS if options.faults == "all" else [f for f in options.faults.split(",") if f]
    proxy = FaultProxy((host, int(port)), faults, options.rate, options.seed, options.latency / 1000, options.bandwidth)
    print(proxy.port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
