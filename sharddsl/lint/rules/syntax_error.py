"""SHD001 syntax-error (error)

The text is not in the language: the message says what was found and what could stand there. The rest of the file is
read all the same, statement by statement, so that one slip hides no other finding; what needs the whole file (rules
that are missing, rules that never win) is then left unjudged, and the report says so.

Bad, as an entry is missing between two commas:

```shard
mesh: [fsdp=4]
*:    {embed: fsdp}
act:  [fsdp, , None]
```

Good:

```shard
mesh: [fsdp=4]
*:    {embed: fsdp}
act:  [fsdp, None, None]
```

How to mend it: as the help says. `docs/language.md` has the whole language on one page.
"""
