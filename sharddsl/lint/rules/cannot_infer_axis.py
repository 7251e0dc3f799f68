"""SHD104 cannot-infer-axis (error)

The size of a mesh axis cannot be told: more than one axis is -1, the other axes do not divide the number of devices, or
the size is no number of devices at all.

Bad, as any split of the devices between the two would do:

```shard
mesh: [fsdp=-1, mp=-1]
*:    {embed: fsdp, heads: mp, ffn: mp}
act:  {batch: fsdp, heads: mp, ffn: mp}
```

Good, with `--devices 16` or in a check with a target:

```shard
mesh: [fsdp=-1, mp=4]
*:    {embed: fsdp, heads: mp, ffn: mp}
act:  {batch: fsdp, heads: mp, ffn: mp}
```

How to mend it: give all axes but one a size, and that one -1 if it is to grow with the machine: an axis that splits the
batch, as one that splits heads soon has more devices than there are heads.
"""
