for split in a a=1,a=1 a=0.5,b=0.4 a=0 a=2 a=-1,b=2 A=1 -a=1 =1 a= a=x a=1x a=nan 'a=0.5,,b=0.5' 'a=1,' a/b=1; do
    status_of shardpack pack --split "$split" a b
done
