#!/usr/bin/env python3
"""A stand-in for an S3 server, for tests without network: objects in memory, requests checked by Signature Version 4.

It knows what shardpack uses: GET with ranges, HEAD, PUT, DELETE, multipart uploads, ListObjectsV2, bucket in the path or
in the host. As a program: s3_stand_in.py [KEY SECRET] prints its port and serves until its standard input ends.
"""
import datetime
import hashlib
import hmac
import http.server
import re
import sys
import threading
import urllib.parse
import xml.sax.saxutils


def signature(secret, date, region, service, text):
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Refused(Exception):
    def __init__(self, status, code, text=""):
        super().__init__(code)
        self.status, self.code, self.text = status, code, text


class S3StandIn:
    def __init__(self, keys=None, region="us-east-1", host="127.0.0.1"):
        """keys: {access key: (secret, session token or None)}; None: no authentication."""
        self.keys, self.region, self.expired = keys, region, set()
        self.objects, self.uploads, self.log = {}, {}, []
        self.lock = threading.RLock()
        self.domain = ".localhost"  # what comes before it in a host name is a bucket
        self.fail = None  # a function of (method, path, query) that may raise Refused, or return "drop", or "lose": done, but never answered
        stand_in = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def serve(self):
                stand_in.serve(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        self.server = Server((host, 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://{host}:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    # ---- authentication ----

    def check(self, request, path, query, body):
        if self.keys is None:
            return
        header = request.headers.get("Authorization", "")
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", header)
        if not found:
            raise Refused(403, "AccessDenied", "no signature")
        access, date, region, signed, given = found.groups()
        if access not in self.keys:
            raise Refused(403, "InvalidAccessKeyId")
        secret, token = self.keys[access]
        if region != self.region:
            raise Refused(400, "AuthorizationHeaderMalformed", f"the region is {self.region}")
        stamp = request.headers.get("X-Amz-Date", "")
        when = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ")
        if abs((datetime.datetime.utcnow() - when).total_seconds()) > 900 or not stamp.startswith(date):
            raise Refused(403, "RequestTimeTooSkewed")
        payload = request.headers.get("X-Amz-Content-Sha256", "")
        if payload != "UNSIGNED-PAYLOAD" and payload != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch")
        names = signed.split(";")
        for must in ["host", "x-amz-date", "x-amz-content-sha256"] + (["x-amz-security-token"] if token else []):
            if must not in names:
                raise Refused(403, "AccessDenied", f"{must} is not signed")
        head = "".join(f"{n}:{' '.join(request.headers.get(n, '').split())}\n" for n in names)
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical_query = "&".join(f"{urllib.parse.quote(k, safe='-_.~')}={urllib.parse.quote(v, safe='-_.~')}" for k, v in pairs)
        canonical_path = urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~")
        canonical = "\n".join([request.command, canonical_path, canonical_query, head, signed, payload])
        scope = f"{date}/{region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        if not hmac.compare_digest(signature(secret, date, region, "s3", text), given):
            raise Refused(403, "SignatureDoesNotMatch")
        if token and request.headers.get("X-Amz-Security-Token") != token:
            raise Refused(403, "InvalidToken")
        if access in self.expired:
            raise Refused(400, "ExpiredToken")

    # ---- requests ----

    def serve(self, request):
        url = urllib.parse.urlsplit(request.path)
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        with self.lock:
            self.log.append((request.command, request.path, dict(request.headers)))
        try:
            fate = self.fail and self.fail(request.command, url.path, url.query)
            if fate == "drop":
                request.close_connection = True
                return
            self.check(request, url.path, url.query, body)
            path = urllib.parse.unquote(url.path)
            host = request.headers.get("Host", "").partition(":")[0]
            if host.endswith(self.domain):
                path = "/" + host[:-len(self.domain)] + path
            query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
            with self.lock:
                status, headers, data = self.answer(request, path.lstrip("/"), query, body)
            if fate == "lose":
                request.close_connection = True
                return
        except Refused as why:
            data = (f"<?xml version=\"1.0\"?><Error><Code>{why.code}</Code><Message>"
                    f"{xml.sax.saxutils.escape(why.text)}</Message></Error>").encode()
            status, headers = why.status, {"Content-Type": "application/xml"}
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        if "Content-Length" not in headers:
            request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(data)

    def answer(self, request, key, query, body):
        method = request.command
        if "uploads" in query and method == "POST":
            upload = "u%d" % (len(self.uploads) + 1)
            self.uploads[upload] = (key, {})
            return 200, {}, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode()
        if "uploadId" in query:
            return self.multipart(method, key, query, body)
        if method == "GET" and "list-type" in query:
            return self.list(key.rstrip("/"), query)
        if method == "PUT":
            if request.headers.get("If-None-Match") == "*" and key in self.objects:
                raise Refused(412, "PreconditionFailed")
            etag = '"%s"' % hashlib.md5(body).hexdigest()
            self.objects[key] = (body, etag)
            return 200, {"ETag": etag}, b""
        if method == "DELETE":
            self.objects.pop(key, None)
            return 204, {}, b""
        if key not in self.objects:
            raise Refused(404, "NoSuchKey")
        return self.get(request, *self.objects[key])

    def get(self, request, data, etag):
        total, headers = len(data), {"ETag": etag, "Accept-Ranges": "bytes"}
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", ""))
        if not found or request.command == "HEAD":
            return 200, {**headers, "Content-Length": str(total)}, data
        if found[1]:
            first, last = int(found[1]), min(int(found[2] or total - 1), total - 1)
        else:
            first, last = max(total - int(found[2]), 0), total - 1
        if first > last:
            raise Refused(416, "InvalidRange")
        return 206, {**headers, "Content-Range": f"bytes {first}-{last}/{total}"}, data[first:last + 1]

    def multipart(self, method, key, query, body):
        upload = query["uploadId"]
        if upload not in self.uploads or self.uploads[upload][0] != key:
            raise Refused(404, "NoSuchUpload")
        parts = self.uploads[upload][1]
        if method == "PUT":
            etag = '"%s"' % hashlib.md5(body).hexdigest()
            parts[int(query["partNumber"])] = (body, etag)
            return 200, {"ETag": etag}, b""
        if method == "DELETE":
            del self.uploads[upload]
            return 204, {}, b""
        wanted = re.findall(rb"<PartNumber>(\d+)</PartNumber>\s*<ETag>(?:&quot;|\")?([0-9a-f]+)", body)
        if not wanted or [int(n) for n, _ in wanted] != sorted(parts) or any(
                parts[int(n)][1].strip('"') != e.decode() for n, e in wanted):
            raise Refused(400, "InvalidPart")
        data = b"".join(parts[n][0] for n in sorted(parts))
        digest = hashlib.md5(b"".join(hashlib.md5(parts[n][0]).digest() for n in sorted(parts))).hexdigest()
        self.objects[key] = (data, f'"{digest}-{len(parts)}"')
        del self.uploads[upload]
        return 200, {}, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"

    def list(self, bucket, query):
        start, prefix = query.get("continuation-token", ""), f"{bucket}/{query.get('prefix', '')}"
        names = sorted(k for k in self.objects if k.startswith(prefix) and k > start)
        page = names[:int(query.get("max-keys", 1000))]
        out = ["<ListBucketResult>"]
        for name in page:
            short = xml.sax.saxutils.escape(name[len(bucket) + 1:])
            out.append(f"<Contents><Key>{short}</Key><Size>{len(self.objects[name][0])}</Size></Contents>")
        more = len(page) < len(names)
        out.append(f"<IsTruncated>{str(more).lower()}</IsTruncated>")
        if more:
            out.append(f"<NextContinuationToken>{xml.sax.saxutils.escape(page[-1])}</NextContinuationToken>")
        return 200, {"Content-Type": "application/xml"}, ("".join(out) + "</ListBucketResult>").encode()


def main():
    keys = {sys.argv[1]: (sys.argv[2], None)} if len(sys.argv) == 3 else None
    print(S3StandIn(keys).port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
