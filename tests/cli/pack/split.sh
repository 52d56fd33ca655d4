make_tree src
shardpack pack --split train=0.5,val=0.5 src out | steady
{
    shardpack ls out/train
    shardpack ls out/val
} | sort
status_of shardpack ls out
