"""SHD007 wrong-kind (error)

A thing of the wrong kind for its place: a layout where an axis is needed, `*` (left to the compiler) on a tensor that
is not an activation or a gradient, `..` without a layout to start from, a number where a condition is needed, a
quantity of the compiled program in a `when`.

Bad, as jit refuses an input whose layout is left open:

```shard
mesh:    [fsdp=4]
*:       {embed: fsdp}
mlp.w_in: [*, fsdp]
act:     {batch: fsdp}
```

Good:

```shard
mesh:    [fsdp=4]
*:       {embed: fsdp}
mlp.w_in: [None, fsdp]
act:     {batch: fsdp, seq: *}
```

How to mend it: as the help says, for each kind.
"""
