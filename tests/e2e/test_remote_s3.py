"""Datasets on S3, and what becomes of credentials: signed requests, profiles, tokens, services; nothing is told to others."""
import json
import os
import time

from harness import PATIENCE, equal, require
from servers import FaultProxy, Nginx, S3StandIn, SeaweedFS, put_tree, running
from test_remote import STREAM, dataset, stream

S3 = {"AWS_ENDPOINT_URL": "", "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET-of-the-test",
      "AWS_EC2_METADATA_DISABLED": "true", "SHARDPACK_PLAIN_CREDENTIALS": "1", "HOME": "/nonexistent"}


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


def test_s3_settings(case):
    """Each place that AWS's own tools look at, and which one wins."""
    local = dataset(case)
    with running(S3StandIn({"KEY": ("SECRET-of-the-test", None), "TEMP": ("temporary", "token-1")}, region="eu-west-1")) as s3:
        put_tree(s3, "bucket", local, "set/")
        want = case.spk("ls", local).out
        nowhere = "http://127.0.0.1:1"
        plain = s3_env(s3, AWS_REGION="eu-west-1")
        config = case.write("config", b"[default]\nregion = eu-west-1\nendpoint_url = %s\naws_access_key_id = KEY\n"
                            b"aws_secret_access_key = SECRET-of-the-test\n[profile far]\nregion = eu-west-1\ns3 =\n"
                            b"  addressing_style = path\nendpoint_url = %s\n" % (s3.url.encode(), nowhere.encode()))
        none = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL": ""}
        good = {
            "AWS_ENDPOINT_URL_S3 before AWS_ENDPOINT_URL": {**plain, "AWS_ENDPOINT_URL": nowhere, "AWS_ENDPOINT_URL_S3": s3.url},
            "AWS_DEFAULT_REGION": s3_env(s3, AWS_REGION="", AWS_DEFAULT_REGION="eu-west-1"),
            "AWS_REGION before AWS_DEFAULT_REGION": {**plain, "AWS_DEFAULT_REGION": "us-west-2"},
            "a session token": {**plain, "AWS_ACCESS_KEY_ID": "TEMP", "AWS_SECRET_ACCESS_KEY": "temporary",
                                "AWS_SESSION_TOKEN": "token-1"},
            "all of it in a config file": s3_env(s3, AWS_CONFIG_FILE=str(config), **none),
            "the environment before the profile": {**plain, "AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "far"},
        }
        for what, env in good.items():
            equal(case.spk("ls", "s3://bucket/set", env=env).out, want, what)
        bad = {"*InvalidToken*": {**plain, "AWS_ACCESS_KEY_ID": "TEMP", "AWS_SECRET_ACCESS_KEY": "temporary",
                                  "AWS_SESSION_TOKEN": "other"},
               "*AuthorizationHeaderMalformed*": s3_env(s3),
               "*has an access key but no secret key*": {**plain, "AWS_SECRET_ACCESS_KEY": ""},
               "*credentials would be used unencrypted*": {**plain, "SHARDPACK_PLAIN_CREDENTIALS": "0"},
               "*no region*": {**plain, "AWS_REGION": "a/b"}}
        for text, env in bad.items():
            case.refused(text, "ls", "s3://bucket/set", env=env)


class Service:
    """Answers for a container or an instance: keys(n) is what request number n for keys gets."""

    def __init__(self, keys):
        import http.server
        import threading
        service = self
        self.asked = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                service.asked += 1
                data = json.dumps(keys(service.asked, self.headers)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def in_an_hour(seconds=3600):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def test_s3_keys_that_end(case):
    """Keys of a service that are refused as expired are asked for anew once; those that end soon are asked for ahead of
    that, but not with each request; the token for the service comes from a file."""
    local = dataset(case)
    token = case.write("token", b"Bearer file\n")
    with running(S3StandIn({"K1": ("one", "t"), "K2": ("two", "t")})) as s3:
        put_tree(s3, "bucket", local, "set/")
        env = s3_env(s3, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token))

        def keys(number, headers, ends):
            require(headers.get("Authorization") == "Bearer file", "the token of the file")
            key, secret = ("K1", "one") if number == 1 else ("K2", "two")
            return {"AccessKeyId": key, "SecretAccessKey": secret, "Token": "t", "Expiration": ends}

        s3.expired.add("K1")
        with running(Service(lambda n, headers: keys(n, headers, in_an_hour()))) as service:
            env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = service.url
            equal(stream(case, "s3://bucket/set", "-w", 0, env=env), stream(case, local), "after new keys")
            require(2 <= service.asked <= 4, "asked %d times", service.asked)
        s3.expired.clear()
        with running(Service(lambda n, headers: keys(n, headers, in_an_hour(200)))) as service:
            env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = service.url
            equal(stream(case, "s3://bucket/set", "-w", 0, env=env), stream(case, local), "with keys that end soon")
            require(service.asked <= 4, "asked %d times for %d requests", service.asked, len(s3.log))


def test_s3_service_that_does_not_answer(case):
    import signal
    import socket
    import subprocess
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.listen(64)
        silent.settimeout(PATIENCE)
        env = {**S3, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
               "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:%d/x" % silent.getsockname()[1]}
        process = subprocess.Popen([case.command, "verify", "--deadline", "3600", "s3://bucket/set"],
                                   env={**os.environ, **env}, stderr=subprocess.DEVNULL)
        with silent.accept()[0]:
            process.send_signal(signal.SIGINT)
            equal(process.wait(PATIENCE), 130, "exit status")
        case.refused("*container's service does not answer*", "ls", "--deadline", "1", "s3://bucket/set", env=env,
                     timeout=PATIENCE)


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
        process = subprocess.Popen([case.command, "stream", *STREAM, "-e", "1000", "-w", "2", "s3://bucket/set"], text=True,
                                   env={**os.environ, **s3_env(s3)}, stdout=subprocess.PIPE)
        try:
            for line in process.stdout:
                if line.split()[:2] == ["0", "2"]:  # the workers have read
                    break
            children = [int(w) for t in pathlib.Path(f"/proc/{process.pid}/task").glob("*")
                        for w in (t / "children").read_text().split()]
            lines = [pathlib.Path(f"/proc/{p}/cmdline").read_bytes() for p in [process.pid] + children]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        equal(len(lines), 3, "processes seen")
        require(all(b"worker" in line for line in lines[1:]), "workers: %r", lines)
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
