# A manifest's texts come from strangers: nothing in them reaches the terminal as it is.
make_dataset out
python3 - <<'END'
import json
path = "out/manifest.json"
m = json.load(open(path))
m["fields"][0]["kind"] = "a\u009b31m\u202eb"
m["pack"] = {"k\u009b": "v\u009b\u001b", "list": ["\u009b31m", "\u202e", "\u007f", "fein \u00fc"], "n": 1.5}
open(path, "w").write(json.dumps(m))
END
shardpack info out | grep -e '^fields' -e '^packed' -e ' = '
