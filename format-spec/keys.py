"""How a packer makes keys, fields and splits from original paths: dataset.md sections 5 and 6. Readers need none of it.

Used by `reader.py keys-of` and `reader.py split`. Paths are bytes.
"""

import hashlib
import re


def split_stem(path, first_dot=False):
    base = path.rfind(b"/") + 1
    dot = path.find(b".", base + 1) if first_dot else path.rfind(b".", base + 1)
    return (path, None) if dot < 0 else (path[:dot], path[dot + 1 :])


def clean_key(path):
    # With "surrogateescape" each byte that is not part of well-formed UTF-8 is one character.
    text = path.decode("utf-8", "surrogateescape")
    text = re.sub(r"[^A-Za-z0-9_/-]", "_", text)
    return re.sub(r"(^|/)__+", r"\1_", text)


def hash_form(path, moved=False):
    digest = hashlib.sha256(path + b"\0" if moved else path).hexdigest()
    return clean_key(path)[:55].rstrip("/") + "-" + digest[:16]


def make_key(path):
    key = clean_key(path)
    return key if key.encode() == path and len(key) <= 72 else hash_form(path)


def make_field(extension):
    text = (extension or b"").decode("latin-1")
    text = re.sub("[A-Z]", lambda m: m.group().lower(), text)
    text = re.sub(r"\.+", ".", re.sub(r"[^a-z0-9_.]", "_", text)).strip(".")
    text = re.sub("^__+", "_", text)[:27].rstrip(".")
    return re.sub(r"(^|\.)(jpeg|jpe|jfif)$", r"\1jpg", text) or "bin"


def keys_of(paths, first_dot=False):
    """(key, field, path) for each original path, grouped and told apart by D5.4 and D5.5."""
    groups = {}
    for path in paths:
        stem, extension = split_stem(path, first_dot)
        groups.setdefault(stem, {}).setdefault(make_field(extension), []).append((extension, path))
    samples = []  # (what the key is made from, is it the hash form anyway, [(field, path)])
    for stem, fields in groups.items():
        stay = []
        for field, files in fields.items():
            for extension, path in files:
                if len(files) == 1 or extension == field.encode():
                    stay.append((field, path))
                else:
                    samples.append((path, True, [(field, path)]))
        if stay:
            samples.append((stem, False, stay))
    folded = {}
    for base, moved, _ in samples:
        key = hash_form(base, True) if moved else make_key(base)
        folded.setdefault(key.lower(), set()).add(key)
    result = {}
    for base, moved, files in samples:
        key = hash_form(base, True) if moved else make_key(base)
        if len(folded[key.lower()]) > 1 and key != key.lower():
            key = hash_form(base, moved)
        for field, path in files:
            result[path] = (key, field, path)
    return [result[p] for p in paths]


def split_position(stem):
    return (int.from_bytes(hashlib.sha256(b"split:" + stem).digest()[:8], "big") >> 11) / 2.0**53


def choose_split(position, splits):
    total = 0.0
    for name, share in splits:
        total += share
        if position < total:
            return name
    return splits[-1][0]
