"""SHD003 said-twice (error)

What a file may say once stands in it twice: `mesh`, an axis of it, a `let`, a dim of a named layout. Which of the two
is meant cannot be told. A name that is also a word of the language, or a `let` that is called like an axis, is the same
fault: two things behind one name.

Bad:

```shard
mesh: [fsdp=4]
*:    {embed: fsdp}
act:  {batch: fsdp, batch: None}
```

Good:

```shard
mesh: [fsdp=4]
*:    {embed: fsdp}
act:  {batch: fsdp}
```

How to mend it: keep one of them, or rename one. A *rule* may be written again: the last one that matches wins.
"""
