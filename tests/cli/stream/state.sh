# Saved after any batch, resumed with other workers and batch sizes.
make_dataset out
rows() { grep ' row ' || true; }
shardpack stream -b 2 -e 2 --keys --fields txt out | grep -v -e end -e epoch > want
for at in 1 3 4 5 7; do
    shardpack stream -b 2 -e 2 --save-state-at $at --state state.json out > /dev/null
    epochs=$((at <= 5 ? 2 : 1))
    shardpack stream -b 2 --resume state.json -e $epochs -w $((at % 3)) --keys --fields txt out |
        grep -v -e end -e epoch > rest
    tail -n "$(wc -l < rest)" want | cmp - rest
    shardpack stream -b 3 --resume state.json --keys --fields txt out | rows > other
    rows < want | tail -n +$((at * 2 + 1)) | head -n "$(wc -l < other)" | cmp - other
    echo "$at: $(wc -l < rest), $(wc -l < other)"
done
# At the end, and after a part; written in one step, over what is there.
shardpack stream -b 2 --batches 2 --state state.json out > /dev/null
steady < state.json
shardpack stream -b 2 --state state.json out > /dev/null
shardpack stream -b 2 --resume state.json --epochs 2 out
