"""SHD005 unused-name (warning)

A `let` that nothing uses, or a comment `# shd: ignore[…]` that silences nothing or gives no reason. Each tells a reader
something that is not so.

Bad:

```shard
let data = fsdp

mesh: [fsdp=4]
*:    {embed: fsdp}
act:  {batch: fsdp}
```

Good:

```shard
let data = fsdp

mesh: [fsdp=4]
*:    {embed: data}
act:  {batch: data}
```

How to mend it: use it or remove it; `sharddsl lint --fix` removes it.
"""
