"""shardpack mirror: to folders, S3 and a web server; interrupted anywhere; never a mixture, never an overwrite."""
import os
import random
import signal
import subprocess
import threading
import time

from harness import LONG, PATIENCE, equal, require, same_trees, shards, tree
from servers import Nginx, Refused, S3StandIn, SeaweedFS, running
from test_remote import dataset, stream
from test_remote_s3 import S3, s3_env

INTERRUPTS = 20 if LONG else 5


def secret():
    return {"KEY": ("SECRET-of-the-test", None)}


def test_to_a_folder_and_back_from_s3(case):
    local = dataset(case)
    with running(S3StandIn(secret())) as s3:
        env = s3_env(s3)
        case.spk("mirror", "-q", local, "s3://bucket/a/b", case.dir / "copy", env=env)
        equal(sorted(s3.objects), sorted(f"bucket/a/b/{p.name}" for p in local.iterdir() if p.is_file()), "objects")
        for path in local.glob("*.*"):
            equal(s3.objects[f"bucket/a/b/{path.name}"][0], path.read_bytes(), path.name)
        same_trees(case.dir / "copy", local, "folder")
        case.spk("mirror", "-q", "s3://bucket/a/b", case.dir / "back", env=env)
        same_trees(case.dir / "back", local, "fetched")
        before = len([r for r in s3.log if r[0] == "PUT" and r[1].endswith(".zst")])
        out = case.spk("mirror", local, "s3://bucket/a/b", env=env).out.decode()
        require("were there already" in out, "said: %s", out)
        equal(len([r for r in s3.log if r[0] == "PUT" and r[1].endswith(".zst")]), before, "nothing is sent twice")
        order = [r[1].rsplit("/", 1)[-1] for r in s3.log if r[0] == "PUT"]
        equal(order[before + 1], "manifest.json", "the manifest comes last")
        equal(case.spk("verify", "-q", "s3://bucket/a/b", env=env).out, b"", "verify")


def test_dry_run_sends_nothing(case):
    local = dataset(case)
    with running(S3StandIn(secret())) as s3:
        out = case.spk("mirror", "-n", local, "s3://bucket/x", case.dir / "not", env=s3_env(s3)).out.decode()
        require(out.count("would send %d shards" % len(shards(local))) == 2, "said: %s", out)
        equal(s3.objects, {}, "objects")
        require(not (case.dir / "not").exists(), "no folder is made")


def test_never_overwrites_what_differs(case):
    local = dataset(case)
    name = shards(local)[0].name
    with running(S3StandIn(secret())) as s3:
        s3.objects[f"bucket/x/{name}"] = (b"something else", '"x"')
        case.refused(f"*{name}: is there and differs*", "mirror", "-q", local, "s3://bucket/x", env=s3_env(s3))
        equal(s3.objects[f"bucket/x/{name}"][0], b"something else", "it")
        require("bucket/x/manifest.json" not in s3.objects, "no manifest is published")
        damaged = bytearray(shards(local)[0].read_bytes())
        damaged[1000] ^= 1
        s3.objects[f"bucket/x/{name}"] = (bytes(damaged), '"y"')  # the right size
        case.refused(f"*{name}: is there and differs*", "mirror", "-q", local, "s3://bucket/x", env=s3_env(s3))
    folder = case.dir / "folder"
    folder.mkdir()
    (folder / name).write_bytes(b"mine")
    case.refused(f"*{name}: is there and differs*", "mirror", "-q", local, folder)
    equal((folder / name).read_bytes(), b"mine", "it")


def test_damage_is_not_sent(case):
    local = dataset(case)
    shard = shards(local)[1]
    data = bytearray(shard.read_bytes())
    data[len(data) // 3] ^= 4
    shard.write_bytes(data)
    with running(S3StandIn(secret())) as s3:
        case.refused(f"*{shard.name}: frame *SHA-256 mismatch*", "mirror", "-q", local, "s3://bucket/x", env=s3_env(s3))
        require(f"bucket/x/{shard.name}" not in s3.objects and "bucket/x/manifest.json" not in s3.objects, "sent: %s",
                sorted(s3.objects))


def test_in_parts(case):
    source = case.dir / "source"
    source.mkdir()
    for i in range(12):
        (source / f"{i}.bin").write_bytes(random.Random(i).randbytes(8 << 20))
    case.pack(source, case.dir / "set")
    with running(S3StandIn(secret())) as s3:
        failures = iter([Refused(500, "InternalError"), Refused(503, "SlowDown")])

        def fail(method, path, query):
            if "partNumber=2" in query:
                for why in failures:
                    raise why

        s3.fail = fail
        case.spk("mirror", "-q", case.dir / "set", "s3://bucket/x", env=s3_env(s3))
        equal(s3.uploads, {}, "uploads left open")
        name = shards(case.dir / "set")[0].name
        require("-" in s3.objects[f"bucket/x/{name}"][1], "it came in parts")
        equal(s3.objects[f"bucket/x/{name}"][0], shards(case.dir / "set")[0].read_bytes(), "data")
        # Given up, nothing stays behind.
        s3.objects.clear()

        def refuse(method, path, query):
            if "partNumber=3" in query:
                raise Refused(403, "AccessDenied")

        s3.fail = refuse
        case.refused("*PUT: HTTP 403 AccessDenied*", "mirror", "-q", case.dir / "set", "s3://bucket/x", env=s3_env(s3))
        equal((s3.uploads, s3.objects), ({}, {}), "left behind")


def test_lost_answers(case):
    """What was done though the connection broke before the answer came is found to be there."""
    source, lost = case.dir / "source", set()
    source.mkdir()
    for i in range(5):
        (source / f"{i}.bin").write_bytes(random.Random(i).randbytes(8 << 20))
    case.pack(source, case.dir / "large")

    def lose(method, path, query):
        what = (method, path, query.partition("&")[0])
        if method == "GET" or what in lost:
            return None
        lost.add(what)
        return "lose"

    with running(S3StandIn(secret())) as s3:
        for place in (dataset(case), case.dir / "large"):
            s3.fail = lose
            case.spk("mirror", "-q", place, f"s3://bucket/{place.name}", env=s3_env(s3))
            s3.fail = None
            case.spk("verify", "-q", f"s3://bucket/{place.name}", env=s3_env(s3))
    for method, query in (("PUT", ""), ("PUT", "partNumber=2"), ("POST", "uploadId")):
        require(any(m == method and q.startswith(query) for m, _, q in lost), "no answer to %s %s was lost", method, query)


def test_two_at_once(case):
    """Both end well, and the dataset is whole."""
    import concurrent.futures
    local = dataset(case)
    with running(S3StandIn(secret())) as s3, concurrent.futures.ThreadPoolExecutor(3) as pool:
        s3.fail = lambda method, path, query: time.sleep(0.1) if method != "GET" else None
        for done in [pool.submit(case.spk, "mirror", "-q", local, "s3://bucket/x", env=s3_env(s3)) for _ in range(3)]:
            done.result()
        case.spk("verify", "-q", "s3://bucket/x", env=s3_env(s3))


def test_keys_that_expire_while_sending(case):
    local = dataset(case)
    template = "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\naws_session_token=%s-token\n"
    file = case.write("credentials", b"")
    with open(file, "w") as out:
        out.write(template % ("OLD", "old", "old"))
    with running(S3StandIn({"OLD": ("old", "old-token"), "NEW": ("new", "new-token")})) as s3:
        env = s3_env(s3, AWS_SHARED_CREDENTIALS_FILE=str(file), AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")

        def expire(method, path, query):
            if method == "PUT" and not s3.expired:
                with open(file, "w") as out:
                    out.write(template % ("NEW", "new", "new"))
                s3.expired.add("OLD")

        s3.fail = expire
        case.spk("mirror", "-q", local, "s3://bucket/x", env=env)
        s3.fail = None
        case.spk("verify", "-q", "s3://bucket/x", env=env)
        s3.expired.add("NEW")
        case.refused("*HTTP 40*", "mirror", "-q", local, "s3://bucket/y", env=env)


def test_to_a_web_server(case):
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web:
        case.spk("mirror", "-q", local, web.url + "/put/set")
        same_trees(local.parent / "put/set", local, "put")
        case.spk("verify", "-q", web.url + "/put/set")
        case.refused("*cannot be asked for a list*", "mirror", "-q", "--prune", local, web.url + "/put/set")
        case.refused("*HTTP 405*", "mirror", "-q", local, web.url + "/elsewhere")


def versions(case):
    """Two datasets of the same photographs."""
    a = dataset(case)
    b = case.dir / "second"
    case.pack(case.photos(25), b, "--shard-size", "500K", "--frame-samples", "8", "--seed", "9")
    return a, b


def test_prune_removes_the_version_before(case):
    a, b = versions(case)
    with running(S3StandIn(secret())) as s3:
        s3.objects["bucket/x/notes.txt"] = (b"mine", '"n"')
        s3.objects["bucket/x/below/shard-00000000-000000.tar.zst"] = (b"mine", '"n"')
        case.spk("mirror", "-q", a, "s3://bucket/x", env=s3_env(s3))
        case.spk("mirror", "-q", "--prune", b, "s3://bucket/x", env=s3_env(s3))
        want = {f"bucket/x/{p.name}" for p in b.iterdir() if p.is_file()}
        equal(set(s3.objects), want | {"bucket/x/notes.txt", "bucket/x/below/shard-00000000-000000.tar.zst"}, "objects")
    case.spk("mirror", "-q", a, case.dir / "f")
    case.spk("mirror", "-q", "--prune", b, case.dir / "f")
    same_trees(case.dir / "f", b, "folder")


def interrupt(case, command, env, delay, how):
    process = subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        process.wait(PATIENCE)


def interrupted(case, dest, env, watch):
    """Replaces version a at dest by b with kills at random moments; watch must see one of the two all the time."""
    a, b = versions(case)
    case.spk("mirror", "-q", a, dest, env=env)
    whole, seen, stop = [case.spk("ls", d).out for d in (a, b)], [], threading.Event()

    def look():
        while not stop.is_set():
            done = case.run(case.command, "ls", watch, env=env)
            seen.append(done.out if done.code == 0 else done.text)

    reader = threading.Thread(target=look)
    reader.start()
    random.seed(5)
    try:
        while not seen:
            time.sleep(0.01)
        for i in range(INTERRUPTS):
            how = signal.SIGKILL if i % 3 else signal.SIGINT
            interrupt(case, [case.command, "mirror", "-q", "-j", "2", b, dest], env, random.random() * 0.6, how)
        case.spk("mirror", "-q", b, dest, env=env)
    finally:
        stop.set()
        reader.join()
    for out in seen:
        require(out in whole, "a reader saw neither: %s", out)
    equal(seen[0], whole[0], "the old one was seen")
    equal(case.spk("ls", watch, env=env).out, whole[1], "the new one")
    case.spk("verify", "-q", watch, env=env)


def test_interrupted_to_s3(case):
    with running(S3StandIn(secret())) as s3:
        s3.fail = lambda method, path, query: time.sleep(0.05) if method != "GET" else None
        interrupted(case, "s3://bucket/x", s3_env(s3), "s3://bucket/x")


def test_interrupted_to_a_folder(case):
    interrupted(case, case.dir / "dest", {}, case.dir / "dest")
    require(not (case.dir / "dest/.shardpack").exists() or not os.listdir(case.dir / "dest/.shardpack"), "work files stay")


def test_interrupted_to_a_web_server(case):
    (case.dir / "web").mkdir()
    with running(Nginx(case, case.dir / "web")) as web:
        interrupted(case, web.url + "/put/set", {}, web.url + "/put/set")


def test_seaweedfs_in_parts(case):
    source = case.dir / "source"
    source.mkdir()
    for i in range(8):
        (source / f"{i}.bin").write_bytes(random.Random(i).randbytes(8 << 20))
    case.pack(source, case.dir / "set")
    with running(SeaweedFS(case)) as s3:
        s3.make_bucket(case, "bucket")
        case.spk("mirror", "-q", case.dir / "set", "s3://bucket/x", env=s3.env())
        case.spk("verify", "-q", "s3://bucket/x", env=s3.env())
        out = case.spk("mirror", case.dir / "set", "s3://bucket/x", env=s3.env()).out.decode()
        require("was there already" in out or "were there already" in out, "said: %s", out)
