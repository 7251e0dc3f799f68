"""SHD004 cannot-extend (error)

The base that `extends` names cannot be had: there is no such spec or file, files extend each other in a circle, the
file lies outside the project and the shipped specs, or the statement is not the first of its file.

Bad, as no spec has this name:

```shard
extends "llama/fdsp"

mesh: [fsdp=4]
```

Good:

```shard
extends "llama/fsdp"

mesh: [fsdp=4]
```

How to mend it: take the name that the help offers. A name without a suffix is looked for in the project's `specs/`
folder and among the shipped specs; a path ends in `.shard` and is relative to the file.
"""
