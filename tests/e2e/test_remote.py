"""Datasets by URL: every command against nginx, TLS and S3; mirrors that fail, stall and lie; the same batches always."""
import json
import os
import re
import shutil
import time

from harness import LONG, equal, long, require, shards
from servers import FAULTS, FaultProxy, Nginx, Refused, S3StandIn, SeaweedFS, SlowHandshake, put_tree, running

STREAM = ["--hflip", "0.5", "--batch-size", "64"]
S3 = {"AWS_ENDPOINT_URL": "", "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET-of-the-test",
      "AWS_EC2_METADATA_DISABLED": "true", "SHARDPACK_PLAIN_CREDENTIALS": "1", "HOME": "/nonexistent"}


def dataset(case, per_class=25, name="web/set"):
    target = case.dir / name
    target.parent.mkdir(exist_ok=True)
    case.pack(case.photos(per_class), target, "--shard-size", "700K", "--frame-samples", "8")
    return target


def stream(case, target, *options, **more):
    return case.spk("stream", *STREAM, *map(str, options), target, **more).out


def test_every_command_by_url(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        url = web.url + "/set"
        for command in (["ls"], ["ls", "-l"], ["info", "--classes"], ["verify", "-q"], ["export"]):
            more = ["sha256"] if command == ["export"] else []
            have, want = case.spk(*command, url, *more).out, case.spk(*command, local, *more).out
            equal(have.replace(url.encode(), b"X"), want.replace(str(local).encode(), b"X"), " ".join(command))
        key = case.keys(local)[7]
        equal(case.spk("cat", url, f"{key}.jpg").out, case.spk("cat", local, f"{key}.jpg").out, "cat")
        case.spk("extract", "-q", url, case.dir / "a")
        case.spk("extract", "-q", local, case.dir / "b")
        case.run("diff", "-r", case.dir / "a", case.dir / "b", check=True)
        shard = shards(local)[0]
        equal(case.spk("ls", f"{url}/{shard.name}").out, case.spk("ls", shard).out, "one shard")
        case.spk("verify", "-q", f"{url}/{shard.name}")
        case.spk("bench", "--json", "-e", "1", "-w", "1", url)
        equal(case.spk("ls", url + "/manifest.json").out, case.spk("ls", local).out, "by its manifest")


def test_same_batches_for_any_workers(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        want = stream(case, local, "-e", 2)
        for workers in (0, 1, 2, 4):
            equal(stream(case, web.url + "/set", "-e", 2, "-w", workers), want, f"{workers} workers")
        equal(stream(case, web.url + "/set", "--no-shuffle", "-w", 2), stream(case, local, "--no-shuffle"), "in order")
        cache = case.dir / "cache"
        for workers in (0, 3):
            equal(stream(case, web.url + "/set", "-e", 2, "-w", workers, "--cache-dir", cache), want, "with a cache")


def test_tls(case):
    local = dataset(case)
    with running(Nginx(case, local.parent, tls=True)) as web:
        case.refused("*certificate*", "ls", web.tls_url + "/set", "--deadline", "1")
        have = stream(case, web.tls_url + "/set", "-w", 2, env={"CURL_CA_BUNDLE": str(web.dir / "cert.pem")})
        equal(have, stream(case, local), "over TLS")


def test_slow_tls_handshakes(case):
    local = dataset(case)
    want = stream(case, local)
    with running(Nginx(case, local.parent, tls=True)) as web:
        trust, server = {"CURL_CA_BUNDLE": str(web.dir / "cert.pem")}, ("127.0.0.1", web.tls_port)
        with running(SlowHandshake(server, lambda n: 1.5 * (n % 2))) as slow:
            equal(stream(case, slow.url + "/set", "-w", 2, env=trust), want, "every other one takes 1.5 s")
            require(slow.connections > 1, "%d connections", slow.connections)
        with running(SlowHandshake(server, lambda n: 600)) as stuck:
            have = stream(case, stuck.url + "/set", "--mirror", web.tls_url + "/set", "-w", 2, env=trust)
            equal(have, want, "from the mirror beside one that never ends its handshakes")
            start = time.monotonic()
            case.refused(f"*{stuck.url}*", "ls", stuck.url + "/set", "--deadline", "2", env=trust)
            require(time.monotonic() - start < 30, "in time")


def test_figures_of_mirrors(case):
    local = dataset(case)
    size = sum(path.stat().st_size for path in shards(local))
    with running(Nginx(case, local.parent)) as web:
        with running(FaultProxy(web.address, ["503"], only=lambda path: path.endswith(".zst"), retry_after=0)) as bad:
            urls, cache = [bad.url + "/set", web.url + "/set"], case.dir / "cache"
            place = [urls[0], "--mirror", urls[1], "--cache-dir", cache]
            done = json.loads(case.spk("bench", "--json", "-e", "2", "-w", "1", *place).out)["passes"][0]
            equal([mirror["url"] for mirror in done["mirrors"]], urls, "mirrors")
            first, second = done["mirrors"]
            require(first["throttled"] > 0 and first["wrong_bytes"] == first["missing"] == 0, "%r", first)
            require(second["failovers"] > 0 and second["bytes"] >= size and second["retries"] == 0, "%r", second)
            require(0 < second["latency_p50"] <= second["latency_p99"], "%r", second)
            equal(sum(done["cache"][name] > 0 for name in ("hits", "hit_bytes", "misses")), 3, "figures of the cache")
            table = case.spk("bench", "-e", "1", "-w", "1", *place).out.decode()
            require(urls[1] + ": " in table and "first byte after" in table and "cache: " in table, "%s", table)
            lines = stream(case, *place[:1], "--json", *place[1:]).splitlines()
            require("mirrors" not in json.loads(lines[-1]), "%r", lines[-1])
            last = json.loads(stream(case, *place[:1], "--json", "-v", *place[1:]).splitlines()[-1])
            equal([mirror["url"] for mirror in last["mirrors"]], urls, "mirrors")
            require(last["cache"]["hits"] > 0, "%r", last)
        equal(json.loads(case.spk("bench", "--json", "-e", "1", "-w", "1", local).out)["passes"][0].get("mirrors"), None, "local")


def test_one_download_for_two_processes(case):
    import concurrent.futures
    local = dataset(case)
    want = stream(case, local)
    with running(Nginx(case, local.parent)) as web, concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(stream, case, web.url + "/set", "-w", 2, "--cache-dir", case.dir / "cache") for _ in range(2)]
        for run in runs:
            equal(run.result(), want, "with a common cache")
        asked = [line[1] + " " + line[4] for line in web.requests() if line[1].endswith(".zst")]
        equal(len(asked), len(set(asked)), f"no range twice: {sorted(asked)}")


def test_connections_are_used_again(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web, running(FaultProxy(web.address, [])) as proxy:
        stream(case, proxy.url + "/set", "-w", 1, "-e", 2)
        require(len(proxy.log) > 3 * proxy.connections, "%d requests on %d connections", len(proxy.log), proxy.connections)


def test_lists_nothing(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        stream(case, web.url + "/set", "-w", 2)
        require(all(line[0] == "GET" and not line[1].endswith("/") for line in web.requests()), "only objects are asked for")


# ---- faults ----


def faulty(case, web, faults, seed, rate=0.3, **more):
    return FaultProxy(web.address, faults, rate, seed=seed, redirect=web.url, stall=20, **more)


def test_two_bad_mirrors_of_three(case):
    local = dataset(case)
    epochs = 10 if LONG else 2
    with running(Nginx(case, local.parent)) as web:
        want = stream(case, local, "-e", epochs)
        for seed, workers in enumerate([0, 1, 2, 3, 4] if LONG else [0, 2]):
            for cache in ([], ["--cache-dir", case.dir / f"cache-{seed}"]):
                with running(faulty(case, web, FAULTS, seed), faulty(case, web, FAULTS, seed + 100)) as (a, b):
                    have = stream(case, a.url + "/set", "-w", workers, "-e", epochs, "--mirror", b.url + "/set", "--mirror",
                                  web.url + "/set", *cache)
                    equal(have, want, f"{workers} workers, seed {seed}, {len(a.log)} and {len(b.log)} requests to bad mirrors")


# A fault on every request. Some only cost time; all others end in one line that says why, in time.
ENDS = {"latency": None, "slowtls": None, "throttle": None, "stall": "*the deadline has passed*", "reset": "*Connection reset*",
        "truncate": "*cut short*", "wronglength": "*12345678 bytes there*", "wrongrange": "*another range than asked for*",
        "flip": "*", "301": "*too many redirects*", "302": "*too many redirects*", "307": "*too many redirects*",
        "401": "*HTTP 401*", "403": "*HTTP 403*", "404": "*HTTP 404*", "416": "*HTTP 416*", "429": "*throttled*HTTP 429*",
        "500": "*HTTP 500*", "503": "*throttled*HTTP 503*", "etag": "*ETag*", "html": "*", "garbage": "*broken*"}


def test_each_fault_ends_in_one_clear_error(case):
    import concurrent.futures
    equal(sorted(ENDS), sorted(FAULTS), "faults")
    local = dataset(case)

    def one(web, fault):
        with running(FaultProxy(web.address, [fault], stall=20)) as a, running(FaultProxy(web.address, [fault], stall=20)) as b:
            cache, start = case.dir / f"cache-{fault}", time.monotonic()
            done = case.run(case.command, "stream", *STREAM, "--image", "none", "-w", "1", "--batches", "1", "--deadline",
                            "3", "--cache-dir", cache, "--mirror", b.url + "/set", a.url + "/set")
            took = time.monotonic() - start
            lines = done.text.splitlines()
            require(took < 60, "%s: took %d s", fault, took)
            if ENDS[fault] is None and done.code == 0:
                return
            import fnmatch
            require(done.code == 1 and len(lines) == 1, "%s: %s", fault, done.describe())
            require(fnmatch.fnmatchcase(lines[0], ENDS[fault] or "*deadline*"), "%s: %s", fault, lines[0])
            if fault not in ("flip", "html", "throttle"):
                require(a.url in lines[0] and b.url in lines[0], "%s: both mirrors are named: %s", fault, lines[0])
            # What is in the cache is right: with a good server and no other source than it, nothing differs.
            equal(stream(case, web.url + "/set", "--cache-dir", cache), want, "the cache after " + fault)

    with running(Nginx(case, local.parent)) as web:
        want = stream(case, local)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for done in [pool.submit(one, web, fault) for fault in FAULTS]:
                done.result()


def test_a_lying_mirror_is_found_at_the_frame(case):
    local = dataset(case)
    spoil = lambda path: path.endswith(".zst")  # noqa: E731
    with running(Nginx(case, local.parent)) as web:
        with running(FaultProxy(web.address, ["flip"], only=spoil)) as liar:
            equal(stream(case, liar.url + "/set", "-w", 2, "--mirror", web.url + "/set"), stream(case, local), "batches")
            done = case.run(case.command, "stream", *STREAM, liar.url + "/set")
            require(done.code == 1 and "SHA-256 mismatch" in done.text and liar.url in done.text, "%s", done.describe())


def test_cached_damage_is_fetched_again(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        want = stream(case, web.url + "/set", "--cache-dir", case.dir / "cache")
        for data in (case.dir / "cache/shardpack-cache-1").glob("*.data"):
            with open(data, "r+b") as file:
                file.seek(data.stat().st_size // 2)
                file.write(b"damage")
        equal(stream(case, web.url + "/set", "--cache-dir", case.dir / "cache", "-w", 2), want, "after damage in the cache")


def test_missing_shard_is_an_error_that_names_it(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        gone = shards(local)[1]
        gone.unlink()
        start = time.monotonic()
        done = case.run(case.command, "stream", *STREAM, "-w", "2", web.url + "/set")
        require(done.code == 1 and gone.name in done.text and "HTTP 404" in done.text, "%s", done.describe())
        require(time.monotonic() - start < 20, "in time")


# ---- S3 ----


def s3_env(server, **more):
    return {**S3, "AWS_ENDPOINT_URL": server.url, **more}


def test_s3_signed(case):
    local = dataset(case)
    with running(S3StandIn({"KEY": ("SECRET-of-the-test", None)})) as s3:
        put_tree(s3, "bucket", local, "some/prefix/")
        url = "s3://bucket/some/prefix"
        want = stream(case, local, "-e", 2)
        for workers in range(5):
            cache = case.dir / f"cache-{workers}"
            equal(stream(case, url, "-w", workers, "-e", 2, env=s3_env(s3)), want, f"{workers} workers")
            equal(stream(case, url, "-w", workers, "-e", 2, "--cache-dir", cache, env=s3_env(s3)), want,
                  f"{workers} workers with a cache")
        case.refused("*SignatureDoesNotMatch*", "ls", url, env=s3_env(s3, AWS_SECRET_ACCESS_KEY="other"))
        case.refused("*InvalidAccessKeyId*", "ls", url, env=s3_env(s3, AWS_ACCESS_KEY_ID="nobody"))
        case.refused("*NoSuchKey*", "ls", "s3://bucket/nothing", env=s3_env(s3))
        case.refused("*AuthorizationHeaderMalformed*", "ls", url, env=s3_env(s3, AWS_REGION="eu-north-1"))


def test_s3_virtual_host_style(case):
    local = dataset(case)
    with running(S3StandIn({"KEY": ("SECRET-of-the-test", None)})) as s3:
        put_tree(s3, "bucket", local, "set/")
        endpoint = s3.url.replace("127.0.0.1", "localhost")
        env = s3_env(s3, AWS_ENDPOINT_URL=endpoint, SHARDPACK_S3_ADDRESSING="virtual")  # libcurl knows *.localhost
        equal(stream(case, "s3://bucket/set", "-w", 2, env=env), stream(case, local), "batches")
        hosts = {(headers.get("Host"), path.split("/")[1]) for _, path, headers in s3.log}
        equal(hosts, {(f"bucket.localhost:{s3.port}", "set")}, "the bucket is in the host, not in the path")
        s3.log.clear()
        # By way of a proxy, which is told the whole URL: no name is looked up here.
        env = s3_env(s3, AWS_ENDPOINT_URL="http://storage.localhost", SHARDPACK_S3_ADDRESSING="virtual", http_proxy=s3.url,
                     no_proxy="")
        s3.domain = ".storage.localhost"
        equal(case.spk("ls", "s3://bucket/set", env=env).out, case.spk("ls", local).out, "ls by a proxy")
        equal({headers.get("Host") for _, _, headers in s3.log}, {"bucket.storage.localhost"}, "host")


def test_s3_profiles_tokens_and_anonymous(case):
    local = dataset(case)
    keys = {"KEY": ("SECRET-of-the-test", None), "TEMP": ("temporary", "token-1")}
    with running(S3StandIn(keys)) as s3:
        put_tree(s3, "bucket", local, "set/")
        case.write("home/.aws/credentials", b"[default]\naws_access_key_id = KEY\naws_secret_access_key = SECRET-of-the-test\n"
                   b"[temp]\naws_access_key_id=TEMP\naws_secret_access_key=temporary\naws_session_token = token-1\n")
        case.write("home/.aws/config", b"[profile temp]\nregion = us-east-1\nservices = mine\n[services mine]\ns3 =\n"
                   b"  endpoint_url = %s\n" % s3.url.encode())
        clean = {k: "" for k in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        env = s3_env(s3, HOME=str(case.dir / "home"), **clean)
        want = case.spk("ls", local).out
        equal(case.spk("ls", "s3://bucket/set", env=env).out, want, "default profile")
        temp = {**env, "AWS_PROFILE": "temp", "AWS_ENDPOINT_URL": ""}
        equal(case.spk("ls", "s3://bucket/set", env=temp).out, want, "profile with token and endpoint")
        case.refused("*AWS_PROFILE is \"nobody\"*", "ls", "s3://bucket/set", env={**env, "AWS_PROFILE": "nobody"})
        case.refused("*S3 credentials: none*", "ls", "s3://bucket/set", env={**env, "HOME": "/nonexistent"})
        s3.keys = None
        equal(case.spk("ls", "s3://bucket/set", env={**env, "AWS_NO_SIGN_REQUEST": "1"}).out, want, "anonymous")
        require("Authorization" not in s3.log[-1][2], "no signature is sent")


def test_s3_expired_token_is_read_anew_once(case):
    local = dataset(case)
    keys = {"OLD": ("old", "old-token"), "NEW": ("new", "new-token")}
    with running(S3StandIn(keys)) as s3:
        put_tree(s3, "bucket", local, "set/")
        file = case.write("credentials", b"")
        template = "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\naws_session_token=%s-token\n"
        file.write_text(template % ("OLD", "old", "old"))
        env = s3_env(s3, AWS_SHARED_CREDENTIALS_FILE=str(file), AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
        seen = []

        def expire(method, path, query):
            seen.append(path)
            if len(seen) == 6:  # in the middle of the run
                s3.expired.add("OLD")
                file.write_text(template % ("NEW", "new", "new"))

        s3.fail = expire
        equal(stream(case, "s3://bucket/set", "-w", 1, env=env), stream(case, local), "over a change of the token")
        s3.fail = None
        s3.expired.update(("OLD", "NEW"))
        case.refused("*ExpiredToken*", "ls", "s3://bucket/set", env=env)


def test_s3_container_and_instance_credentials(case):
    import http.server
    import threading
    local = dataset(case)
    answer = json.dumps({"AccessKeyId": "KEY", "SecretAccessKey": "SECRET-of-the-test", "Token": "t",
                         "Expiration": "2099-01-01T00:00:00Z"}).encode()
    asked = []

    class Service(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def reply(self, data, status=200):
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_PUT(self):
            asked.append(("PUT", self.path))
            self.reply(b"imds-token" if "X-aws-ec2-metadata-token-ttl-seconds" in self.headers else b"", 200)

        def do_GET(self):
            asked.append(("GET", self.path))
            if self.path == "/container":
                self.reply(answer if self.headers.get("Authorization") == "Bearer x" else b"", 200)
            elif self.headers.get("X-aws-ec2-metadata-token") != "imds-token":
                self.reply(b"", 401)
            else:
                self.reply(b"role\n" if self.path.endswith("/") else answer)

    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    base = "http://127.0.0.1:%d" % service.server_address[1]
    with running(S3StandIn({"KEY": ("SECRET-of-the-test", "t")})) as s3:
        put_tree(s3, "bucket", local, "set/")
        env = s3_env(s3, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
        want = case.spk("ls", local).out
        container = {**env, "AWS_CONTAINER_CREDENTIALS_FULL_URI": base + "/container",
                     "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer x"}
        equal(case.spk("ls", "s3://bucket/set", env=container).out, want, "container")
        case.refused("*neither https nor of this machine*", "ls", "s3://bucket/set",
                     env={**container, "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.org/x"})
        instance = {**env, "AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": base}
        equal(case.spk("ls", "s3://bucket/set", env=instance).out, want, "instance")
        require(("PUT", "/latest/api/token") in asked, "with a session token of the service")
    service.shutdown()


def test_seaweedfs(case):
    local = dataset(case)
    with running(SeaweedFS(case)) as s3:
        s3.make_bucket(case, "bucket")
        case.spk("mirror", "-q", local, "s3://bucket/a/set", env=s3.env())
        want = stream(case, local, "-e", 2)
        for workers in (0, 3):
            equal(stream(case, "s3://bucket/a/set", "-w", workers, "-e", 2, env=s3.env()), want, f"{workers} workers")
        case.spk("verify", "-q", "s3://bucket/a/set", env=s3.env())
        case.refused("*HTTP 403*", "ls", "s3://bucket/a/set", env={**s3.env(), "AWS_SECRET_ACCESS_KEY": "wrong"})


# ---- secrets ----


def test_credentials_go_nowhere_else(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web, running(FaultProxy(web.address, [])) as other:
        secret = web.url.replace("http://", "http://user:pass-word@") + "/secret/set"
        done = case.run(case.command, "ls", secret)
        require(done.code == 1 and "SHARDPACK_PLAIN_CREDENTIALS" in done.text and "pass-word" not in done.text, "%s",
                done.describe())
        plain = {"SHARDPACK_PLAIN_CREDENTIALS": "1"}
        done = case.run(case.command, "stream", "-v", *STREAM, "-w", "2", secret, env=plain, check=True)
        require("pass-word" not in done.text and b"pass-word" not in done.out, "shown: %s", done.text)
        wrong = secret.replace("pass-word", "wrong-word")
        done = case.run(case.command, "info", wrong + "?token=query-secret", env=plain)
        require(done.code == 1 and "HTTP 401" in done.text, "%s", done.describe())
        require("wrong-word" not in done.text and "query-secret" not in done.text, "shown: %s", done.text)
        # A redirect to another host (another port) gets no credentials.
        with running(FaultProxy(web.address, ["302"], redirect=other.url)) as moved:
            with_user = moved.url.replace("http://", "http://user:pass-word@") + "/set"
            case.spk("ls", with_user, env=plain)
        require(other.log and all("authorization" not in r["headers"] for r in other.log), "the redirect carried credentials")


def test_credentials_are_not_in_ps(case):
    import pathlib
    import subprocess
    local = dataset(case)
    with running(S3StandIn({"KEY": ("SECRET-of-the-test", None)})) as s3:
        put_tree(s3, "bucket", local, "set/")
        process = subprocess.Popen([case.command, "stream", *STREAM, "-e", "100", "-w", "2", "s3://bucket/set"],
                                   env={**os.environ, **s3_env(s3)}, stdout=subprocess.DEVNULL)
        lines = []
        for _ in range(200):
            children = [int(w) for t in pathlib.Path(f"/proc/{process.pid}/task").glob("*")
                        for w in (t / "children").read_text().split()]
            lines = [pathlib.Path(f"/proc/{p}/cmdline").read_bytes() for p in [process.pid] + children]
            if len(lines) == 3 and all(b"worker" in line for line in lines[1:]):
                break
            time.sleep(0.02)
        process.kill()
        process.wait()
        equal(len(lines), 3, "processes seen")
        require(not any(b"SECRET" in line for line in lines), "in ps: %r", lines)


def test_secrets_of_urls_are_not_in_shared_memory(case):
    """They go to the workers by their sockets: nothing of them is in the memory, the arguments or the environment."""
    import pathlib
    import subprocess
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        url = web.url.replace("http://", "http://user:pass-word@") + "/secret/set?token=query-secret"
        process = subprocess.Popen([case.command, "stream", *STREAM, "-e", "1000", "-w", "2", url], text=True,
                                   env={**os.environ, "SHARDPACK_PLAIN_CREDENTIALS": "1"}, stdout=subprocess.PIPE)
        try:
            for line in process.stdout:
                if line.split()[:2] == ["0", "2"]:  # the workers have read
                    break
            children = [int(word) for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*")
                        for word in (task / "children").read_text().split()]
            equal(len(children), 2, "workers")
            memory = [fd for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir() if "shardpack-loader" in os.readlink(fd)]
            equal(len(memory), 1, "shared memory")
            # Its sparse parts were never written to.
            seen = {"memory": memory[0].open("rb").read(1 << 22)}
            require(web.url.encode() in seen["memory"], "the URL without its secrets is there")
            for child in children:
                for name in ("cmdline", "environ"):
                    seen[f"{name} of {child}"] = pathlib.Path(f"/proc/{child}/{name}").read_bytes()
            for where, data in seen.items():
                require(b"pass-word" not in data and b"query-secret" not in data, "a secret in the %s", where)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def test_redirect_of_a_signed_request_is_not_followed(case):
    local = dataset(case)
    with running(S3StandIn({"KEY": ("SECRET-of-the-test", None)})) as s3, running(Nginx(case, local.parent)) as web:
        put_tree(s3, "bucket", local, "set/")
        with running(FaultProxy(("127.0.0.1", s3.port), ["307"], redirect=web.url)) as moved:
            case.refused("*HTTP 307*", "ls", "s3://bucket/set", env=s3_env(s3, AWS_ENDPOINT_URL=moved.url))
        equal(web.requests(), [], "requests to the other host")


def test_presigned_query_goes_to_every_object(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web, running(FaultProxy(web.address, [])) as proxy:
        want = case.spk("ls", local).out
        equal(case.spk("ls", proxy.url + "/set?sig=abc").out, want, "ls")
        require(proxy.log and all(r["path"].endswith("?sig=abc") for r in proxy.log), "%r", proxy.log)


# ---- options ----


def test_options_that_make_no_sense(case):
    local = dataset(case)
    case.refused("*mirrors are for a dataset that is opened by URL*", "ls", "--mirror", "http://127.0.0.1:1/x", local)
    case.refused("*must be http://*", "ls", "--mirror", "ftp://x/y", "http://127.0.0.1:1/x", "--deadline", "1")
    case.refused("*without a valid host*", "ls", "http:///x")
    case.refused("*SHARDPACK_CACHE_LIMIT*", "ls", "http://127.0.0.1:1/x",
                 env={"SHARDPACK_CACHE_DIR": str(case.dir / "c"), "SHARDPACK_CACHE_LIMIT": "many"})
    case.refused("*no connection*", "ls", "http://127.0.0.1:1/x", "--deadline", "1")


def test_mirrors_of_the_manifest(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        with running(FaultProxy(web.address, ["404"], only=lambda path: path.endswith(".zst"))) as bad:
            case.refused("*HTTP 404*", "stream", *STREAM, bad.url + "/set")
            manifest = json.loads((local / "manifest.json").read_text())
            manifest["mirrors"] = [web.url + "/set"]
            (local / "manifest.json").write_text(json.dumps(manifest))
            equal(stream(case, bad.url + "/set", "-w", 2), stream(case, local), "batches")


def test_killed_worker_of_a_remote_dataset(case):
    import pathlib
    import signal
    import subprocess
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        want = stream(case, local, "-e", 4)
        process = subprocess.Popen([case.command, "stream", *STREAM, "-e", "4", "-w", "2", "--cache-dir", case.dir / "cache",
                                    web.url + "/set"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(6):
            time.sleep(0.15)
            for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*"):
                for word in (task / "children").read_text().split()[:1]:
                    os.kill(int(word), signal.SIGKILL)
        equal(process.communicate(timeout=120)[0], want, "batches")
