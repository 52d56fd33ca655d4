"""Datasets by URL: every command against nginx, plain and TLS; mirrors that fail, stall and lie; the same batches always."""
import json
import os
import subprocess
import time

from harness import LONG, PATIENCE, equal, require, shards
from servers import FAULTS, FaultProxy, Nginx, S3StandIn, SlowHandshake, put_tree, running

STREAM = ["--hflip", "0.5", "--batch-size", "64"]


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
        case.refused("*certificate*", "ls", web.tls_url + "/set", "--deadline", "3600", timeout=PATIENCE)
        want, certificate = stream(case, local), str(web.dir / "cert.pem")
        for trust in ({"CURL_CA_BUNDLE": certificate}, {"CURL_CA_BUNDLE": "", "SSL_CERT_FILE": certificate}):
            equal(stream(case, web.tls_url + "/set", "-w", 2, env=trust), want, "over TLS")


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
            case.refused(f"*{stuck.url}*", "ls", stuck.url + "/set", "--deadline", "2", env=trust, timeout=PATIENCE)


def pieces(case, local):
    """What is cached of a dataset's shards: frames and tails."""
    return case.json("info", "--json", local)["frames"] + len(shards(local))


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
            equal((first["codes"], second["codes"]), ({"503": first["throttled"]}, {}), "failures by HTTP status")
            require(second["failovers"] > 0 and second["bytes"] >= size and second["retries"] == 0, "%r", second)
            require(0 < second["latency_p50"] <= second["latency_p99"], "%r", second)
            equal(done["cache"]["hits"] > 0 and done["cache"]["hit_bytes"] > 0, True, "figures of the cache")
            equal(done["cache"]["misses"], pieces(case, local), "pieces fetched")
            table = case.spk("bench", "-e", "1", "-w", "1", *place).out.decode()
            require(urls[1] + ": " in table and "first byte after" in table and "cache: " in table, "%s", table)
            table = case.spk("bench", "-e", "1", "-w", "1", urls[0], "--mirror", urls[1]).out.decode()
            require("throttled (429, 503); HTTP 503 x" in table, "%s", table)
            lines = stream(case, *place[:1], "--json", *place[1:]).splitlines()
            require("mirrors" not in json.loads(lines[-1]), "%r", lines[-1])
            last = json.loads(stream(case, *place[:1], "--json", "-v", *place[1:]).splitlines()[-1])
            equal([mirror["url"] for mirror in last["mirrors"]], urls, "mirrors")
            require(last["cache"]["hits"] > 0, "%r", last)
        equal(json.loads(case.spk("bench", "--json", "-e", "1", "-w", "1", local).out)["passes"][0].get("mirrors"), None, "local")


def test_one_download_for_two_processes(case):
    import concurrent.futures
    local = dataset(case)
    want = stream(case, local, "--json").splitlines()
    with running(Nginx(case, local.parent)) as web, concurrent.futures.ThreadPoolExecutor(2) as pool:
        options = ["--json", "-v", "-w", 2, "--cache-dir", case.dir / "cache"]
        runs = [pool.submit(stream, case, web.url + "/set", *options) for _ in range(2)]
        hedges = 0  # of what stalls: it is asked for twice
        for run in runs:
            *lines, last = run.result().splitlines()
            equal(lines, want, "with a common cache")
            hedges += json.loads(last)["mirrors"][0]["hedges"]
        asked = [line[1] + " " + line[4] for line in web.requests() if line[1].endswith(".zst")]
        require(len(asked) <= len(set(asked)) + hedges, "no range twice: %s", sorted(asked))


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


def soak(case, local, mirrors):
    """The batches for any number of workers, with a cache and without, from three mirrors of which two are faulty.
    mirrors(seed) gives the proxies that make them so, the three URLs, and the environment."""
    epochs, injected = 10 if LONG else 2, set()
    want = stream(case, local, "-e", epochs)
    for seed, workers in enumerate([0, 1, 2, 3, 4] if LONG else [0, 2]):
        for cache in ([], ["--cache-dir", case.dir / f"cache-{seed}"]):
            proxies, (first, second, good), env = mirrors(seed)
            with running(*proxies):
                have = stream(case, first, "-w", workers, "-e", epochs, "--mirror", second, "--mirror", good, *cache, env=env)
                seen = [line["fault"] for proxy in proxies for line in proxy.log if line["fault"]]
                equal(have, want, f"{workers} workers, seed {seed}, {len(seen)} faults")
                injected.update(seen)
    require(not LONG or injected == set(FAULTS), "faults that never came: %s", sorted(set(FAULTS) - injected))


def test_two_bad_mirrors_of_three(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        def mirrors(seed):
            bad = faulty(case, web, FAULTS, seed), faulty(case, web, FAULTS, seed + 100)
            return bad, [place.url + "/set" for place in (*bad, web)], None

        soak(case, local, mirrors)


def test_two_bad_buckets_of_three(case):
    """The same over S3: one endpoint, of whose buckets two are faulty."""
    local = dataset(case)
    with running(S3StandIn({"KEY": ("SECRET-of-the-test", None)})) as s3:
        for bucket in ("one", "two", "good"):
            put_tree(s3, bucket, local, "set/")

        def mirrors(seed):
            proxy = FaultProxy(("127.0.0.1", s3.port), FAULTS, 0.3, seed=seed, stall=20,
                               only=lambda path: not path.startswith("/good/"))
            env = {"AWS_ENDPOINT_URL": proxy.url, "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET-of-the-test",
                   "SHARDPACK_PLAIN_CREDENTIALS": "1"}
            return (proxy,), ["s3://one/set", "s3://two/set", "s3://good/set"], env

        soak(case, local, mirrors)


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
            cache = case.dir / f"cache-{fault}"
            done = case.run(case.command, "stream", "--batch-size", "64", "--image", "none", "-w", "1", "--batches", "1",
                            "--deadline", "6", "--cache-dir", cache, "--mirror", b.url + "/set", a.url + "/set",
                            timeout=PATIENCE)
            lines = done.text.splitlines()
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
            done = case.json("bench", "--json", "-e", "1", "-w", "1", "--cache-dir", case.dir / "cache", "--mirror",
                             web.url + "/set", liar.url + "/set")["passes"][0]
            require(done["mirrors"][0]["wrong_bytes"] > 0, "%r", done["mirrors"])
            equal(done["cache"]["misses"], pieces(case, local), "pieces fetched")
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
        done = case.run(case.command, "stream", *STREAM, "-w", "2", "--deadline", "3600", web.url + "/set", timeout=PATIENCE)
        require(done.code == 1 and gone.name in done.text and "HTTP 404" in done.text, "%s", done.describe())


def test_interrupted_while_it_waits(case):
    """Whatever waits for a server ends when it is told to, though the deadline is far away."""
    import concurrent.futures
    import signal
    local = dataset(case)

    def one(command):
        process = subprocess.Popen([case.command, *map(str, command), "--deadline", "3600"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=PATIENCE)[1]
        finally:
            process.kill()
        require(process.returncode in (-signal.SIGINT, 130), "%s: exit %d: %s", command, process.returncode, said)

    def stuck(web, end):
        return FaultProxy(web.address, ["stall"], stall=3600, only=lambda path: path.endswith(end))

    with running(Nginx(case, local.parent)) as web, concurrent.futures.ThreadPoolExecutor(4) as pool:
        with running(stuck(web, "manifest.json"), stuck(web, ".zst")) as (manifest, shard):
            url, one_shard = shard.url + "/set", f"{shard.url}/set/{shards(local)[0].name}"
            commands = [["ls", manifest.url + "/set"], ["verify", manifest.url + "/set"], ["bench", manifest.url + "/set"],
                        ["mirror", manifest.url + "/set", case.dir / "a"], ["mirror", local, manifest.url + "/put/a"],
                        ["ls", url], ["verify", "-j", "4", url], ["stream", "-w", "0", url], ["stream", "-w", "2", url],
                        ["bench", "-w", "1", url], ["extract", url, case.dir / "b"], ["mirror", url, case.dir / "c"],
                        ["mirror", local, shard.url + "/put/b"], ["ls", one_shard], ["verify", one_shard]]
            for done in [pool.submit(one, command) for command in commands]:
                done.result()


# ---- options ----


def test_options_that_make_no_sense(case):
    local = dataset(case)
    case.refused("*mirrors are for a dataset that is opened by URL*", "ls", "--mirror", "http://127.0.0.1:1/x", local)
    case.refused("*must be http://*", "ls", "--mirror", "ftp://x/y", "http://127.0.0.1:1/x")
    case.refused("*without a valid host*", "ls", "http:///x")
    case.refused("*SHARDPACK_CACHE_LIMIT*", "ls", "http://127.0.0.1:1/x",
                 env={"SHARDPACK_CACHE_DIR": str(case.dir / "c"), "SHARDPACK_CACHE_LIMIT": "many"})
    case.refused("*no connection*", "ls", "http://127.0.0.1:1/x", "--deadline", "5")


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
