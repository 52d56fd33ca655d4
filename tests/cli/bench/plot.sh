# The chart is XML, has its parts, and escapes what is not text.
make_dataset 'out<&>'
shardpack bench -b 2 -w 0,1,2 --step-ms 1 --plot chart.svg 'out<&>' > /dev/null
python3 - <<'PY'
import xml.etree.ElementTree as tree
svg = tree.parse("chart.svg").getroot()
names = [e.tag.split("}")[1] for e in svg.iter()]
print(names.count("polyline"), "lines", names.count("circle"), "circles")
texts = [e.text for e in svg.iter() if e.tag.endswith("text")]
print([t for t in texts if not t.replace(",", "").replace(".", "").isdigit() and "knee" not in t and "CPU" not in t])
PY
