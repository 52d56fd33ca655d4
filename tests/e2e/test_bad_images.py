"""Images that are not what their name says, or are broken: found by --check, and failed on, skipped or kept."""
import json

from harness import equal, require, same_trees, tree
from trees import jpeg, jpeg_bomb, png, png_bomb

WHOLE = jpeg((200, 150))
NOISE = png((60, 50), noise=True)

# name: (data, message, found by --check header)
BAD = {
    "empty.jpg": (b"", "*empty*", True),
    "text.jpg": (b"Hello, I am text.\n" * 20, "*not an image*", True),
    "html.jpg": (b"<!DOCTYPE html><title>404</title>" * 20, "*not an image*", True),
    "half.jpg": (WHOLE[:len(WHOLE) // 2], "*truncated*", False),
    "no-eoi.jpg": (WHOLE[:-2], "*truncated*", False),
    "header-only.jpg": (WHOLE[:20], "*", True),
    "bomb.jpg": (jpeg_bomb(), "*60000*60000*", True),
    "bomb-p.png": (png_bomb(), "*60000*60000*", True),
    "half-p.png": (NOISE[:len(NOISE) // 2], "*PNG*", False),
    "flipped.png": (NOISE[:2000] + b"\xff\xff" + NOISE[2002:], "*PNG*", False),
}  # fmt: skip
GOOD = {
    "plain.jpg": WHOLE,
    "gray.jpg": jpeg(mode="L"),
    "png-by-content.JPEG": png(),
    "cmyk.JPEG": jpeg(mode="CMYK"),
    "gray-p.png": png(mode="L"),
    "alpha.png": png(mode="RGBA"),
    "one-pixel.png": png((1, 1)),
}


def build(case, name, files):
    for file, data in files.items():
        case.write(f"{name}/class/{file}", data)
    return case.dir / name


def test_each_bad_image(case):
    for file, (data, message, by_header) in BAD.items():
        source = build(case, f"src-{file}", {file: data, "ok.jpg": WHOLE})
        target = case.dir / f"set-{file}"
        case.refused(f"*class/{file}: {message}", "pack", "--quiet", source, target)
        require(not (target / "manifest.json").exists(), "%s: published all the same", file)
        if by_header:
            case.refused(f"*class/{file}: *", "pack", "--quiet", "--check", "header", source, case.dir / f"h-{file}")
        else:
            case.pack(source, case.dir / f"h-{file}", "--check", "header")
        case.pack(source, case.dir / f"none-{file}", "--check", "none")


def test_good_images_of_every_kind(case):
    source = build(case, "src", GOOD)
    result = case.json("pack", "--json", source, case.dir / "set")
    equal((result["bad"], result["files"]), (0, len(GOOD)), "bad and packed files")
    images = json.loads((case.dir / "set/manifest.json").read_text())["images"]
    equal((images["count"], images["jpeg"], images["png"]), (7, 3, 4), "images by content")


def test_skip_and_keep(case):
    source = build(case, "src", {**GOOD, **{name: data for name, (data, _, _) in BAD.items()}})
    skipped = case.json("pack", "--json", "--on-bad", "skip", source, case.dir / "skip")
    equal((skipped["bad"], skipped["samples"]), (len(BAD), len(GOOD)), "bad files and samples left, skipping")
    kept = case.json("pack", "--json", "--on-bad", "keep", source, case.dir / "keep")
    equal((kept["bad"], kept["samples"]), (len(BAD), len(GOOD) + len(BAD)), "bad files and samples left, keeping")
    for name in ("skip", "keep"):
        report = (case.dir / name / "bad-files.tsv").read_text()
        for file in BAD:
            require(f"class/{file}\t" in report, "%s is not in bad-files.tsv: %s", file, report)
        for file in GOOD:
            require(file not in report, "%s is in bad-files.tsv: %s", file, report)
        case.spk("verify", "--quiet", case.dir / name)
    case.spk("extract", "--quiet", "--original-names", case.dir / "keep", case.dir / "back")
    same_trees(case.dir / "back", source, "kept files")
    case.spk("extract", "--quiet", "--original-names", case.dir / "skip", case.dir / "good")
    equal(tree(case.dir / "good"), {f"class/{n}".encode(): d for n, d in GOOD.items()}, "files left after skipping")


def test_skipping_is_deterministic(case):
    source = case.dir / "src"
    for i in range(120):
        bad = i % 9 == 4
        case.write(f"src/c{i % 3}/{i:03}.jpg", WHOLE[:100 + i] if bad else jpeg(seed=i))
    for jobs in ("1", "4"):
        case.pack(source, case.dir / jobs, "--on-bad", "skip", "--jobs", jobs, "--shard-samples", "20", "--frame-samples", "3")
    same_trees(case.dir / "4", case.dir / "1")
