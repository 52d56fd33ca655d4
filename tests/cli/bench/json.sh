make_dataset out
shardpack bench --json -b 2 -w 0,1 --step-ms 0.5 out > result
python3 - <<'PY'
import json
result = json.load(open("result"))
passes = result.pop("passes")
for key in ("cpu_quota", "knee_workers", "sufficient_workers"):
    print(key, result.pop(key) > 0)
print(result)
steady = ("workers", "ready_batches", "batches_measured", "rows_measured", "restarts", "substituted")
for one in passes:
    print({key: one[key] for key in steady if not isinstance(one[key], float)}, one["bottleneck"] in ("data", "trainer"))
    print(sorted(one.keys() - steady))
    print({key: one[key] is not None and one[key] > 0 for key in one if key.endswith(("second", "seconds", "bytes"))})
PY
