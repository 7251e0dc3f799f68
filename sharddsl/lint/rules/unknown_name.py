"""SHD002 unknown-name (error)

A name that nothing has: a `let`, a layout, a dim in a condition, a model, a run, a target's kind, a quantity or a unit.
The nearest names that there are come with it. (A mesh axis that does not exist is SHD101, a tensor SHD201, a dim that
no tensor has SHD204.)

Bad, as the dim is called `kv_heads`:

```shard
mesh: [fsdp=4, mp=2]
*:    {embed: fsdp, heads: mp, ffn: mp}
act:  {batch: fsdp, heads: mp, ffn: mp}
when kv_head % mp == 0 {
  attn.{wk, wv}: {embed: fsdp, kv_heads: mp}
}
```

Good:

```shard
mesh: [fsdp=4, mp=2]
*:    {embed: fsdp, heads: mp, ffn: mp}
act:  {batch: fsdp, heads: mp, ffn: mp}
when kv_heads % mp == 0 {
  attn.{wk, wv}: {embed: fsdp, kv_heads: mp}
}
```

How to mend it: take the name that the help offers; `sharddsl lint --fix --unsafe-fixes` does so where there is one.
"""
