"""Sharding configurations that failed people, in this project's terms: what was written, and what should be said.

Each case is one real configuration. `expect` has what must be found, and nothing else may be an error. Where a tool of
another kind gave another verdict than this language does, `why` says why this one is right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Expected:
    """A finding: its code, severity, tensor and dim, and what its message and its help must contain."""

    code: str
    severity: str
    tensor: str
    dim: str | None = None
    says: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    tensors: tuple[str, ...]
    expect: tuple[Expected, ...] = ()
    axes: dict[str, tuple[object, ...]] = field(default_factory=dict)
    devices: int | None = None
    hosts: int | None = None
    rules: tuple[str, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    why: str = ""


ATTENTION_ON_FOUR = """
mesh: [dp=1, fsdp=4, tp=1, sp=1]
act.attn_bias: [(dp, fsdp), None, sp, sp]
act.q:         [(dp, fsdp), tp, sp, None]
"""

EXPERTS = tuple(
    f"model.layers[0].moe.experts.{expert}.{w}.weight: ffn 14336, embed 4096"
    for expert in range(8)
    for w in ("w1", "w2", "w3")
)
ATTENTION = tuple(
    f"model.layers[0].attn.{w}.weight: out {size}, embed 4096"
    for w, size in {"q": 4096, "k": 1024, "v": 1024, "o": 4096}.items()
)

GEMMA = (
    "decoder_block_0.attention.query.kernel: heads 8, hidden 2048, head_dim 256",
    "decoder_block_0.attention.key.kernel: heads 1, hidden 2048, head_dim 256",
    "decoder_block_0.attention.value.kernel: heads 1, hidden 2048, head_dim 256",
    "decoder_block_0.ffw_gating.kernel: hidden 2048, ffn 16384",
)
GEMMA_KEY = "decoder_block_0.attention.key.kernel"

CASES = (
    Case(
        "01 an output that does not divide",
        "mesh: [x=4, y=2]\nresult: [x]",
        ("result: n 5",),
        (
            Expected(
                "SHD302", "error", "result", "n",
                ("n 5 of result is not a multiple of x=4 (remainder 1)",),
                ("sizes of x that divide 5: {1, 5}", "4 or 8", "keep n whole"),
            ),
        ),
    ),
    Case(
        "03 one axis on two dims, and a batch of one, in one run",
        ATTENTION_ON_FOUR,
        ("act.attn_bias: batch ?, one 1, q_len 2048, k_len 2048", "act.q: batch 1, heads 32, q_len 2048, head_dim 128"),
        (
            Expected(
                "SHD102", "error", "act.attn_bias", "k_len",
                ("sp is on two dims of act.attn_bias: q_len and k_len",), ("keep it on q_len", "size 1"),
            ),
            Expected("SHD308", "error", "act.q", "batch", ("batch 1 over dp*fsdp=4",), ("multiples of 4: 4, 8",)),
        ),
        why="that a kernel's blocks are longer than a query of one token is no matter of layout",
    ),
    Case(
        "05 one dim name twice, as written",
        "mesh: [x=2, y=4]\nembedding: {vocab_in: None}",
        ("embedding: vocab_in 151936, vocab_in 4096",),
        (Expected("SHD208", "warning", "embedding", "vocab_in", ("2 dims called vocab_in",), ("positional",)),),
    ),
    Case(
        "05 one dim name twice, once an override gives it an axis",
        "mesh: [x=2, y=4]\nembedding: {vocab_in: None}",
        ("embedding: vocab_in 151936, vocab_in 4096",),
        (
            Expected("SHD208", "warning", "embedding", "vocab_in"),
            Expected(
                "SHD102", "error", "embedding", "vocab_in",
                ("y is on two dims called vocab_in of embedding (0 and 1)",), ("positional layout",),
            ),
        ),
        rules=("embedding: {vocab_in: y}",),
    ),
    Case(
        "07 three entries where the constraint sees two dims",
        "mesh: [data=4, model=2]\nquery.kernel: [data, model, None]",
        ("query.kernel: embed 64, fused 128",),
        (Expected("SHD301", "error", "query.kernel", None, ("3 entries for the 2 dims",), ("at most 2 entries",)),),
    ),
    Case(
        "07 the finished parameter takes them",
        "mesh: [data=4, model=2]\nquery.kernel: [data, model, None]",
        ("query.kernel: embed 64, heads 8, head_dim 16",),
        axes={"query.kernel": (("data",), ("model",), ())},
        why="layouts are resolved against finished parameters, so what an initializer flattens on the way is no matter",
    ),
    Case(
        "09 rules that miss the largest weights",
        "mesh: [tp=8]\nattn.*.weight: [tp]\n"
        "experts.w1.weight: [tp]\nexperts.w2.weight: [None, tp]\nexperts.w3.weight: [tp]",
        (*EXPERTS, *ATTENTION),
        (
            Expected("SHD201", "error", "experts.w1.weight", None, ("matches no tensor",)),
            Expected("SHD201", "error", "experts.w2.weight", None, ("matches no tensor",)),
            Expected("SHD201", "error", "experts.w3.weight", None, ("matches no tensor",)),
            Expected(
                "SHD202", "error", "model.layers[0].moe.experts.0.w1.weight", None,
                ("97 % of the bytes of param", "and 18 more"), ("moe.experts.0.w1.weight: [None, None]",),
            ),
        ),
    ),
    Case(
        "09 a wildcard is a whole segment, and digits are nothing special",
        "mesh: [tp=8]\nattn.*.weight: [tp]\nexperts.*.{w1, w3}.weight: [tp]\nexperts.*.w2.weight: [None, tp]",
        (*EXPERTS, *ATTENTION),
        axes={
            "model.layers[0].moe.experts.7.w1.weight": (("tp",), ()),
            "model.layers[0].moe.experts.7.w2.weight": ((), ("tp",)),
        },
    ),
    Case(
        "11 a second choice of axis for a dim",
        "mesh: [data=4, model=2]\nact.y: {batch: data, embed: (model?, data?)}",
        ("act.y: batch 8, length 16, embed 32",),
        (Expected("SHD307", "info", "act.y", "embed", ("data was dropped", "data already splits batch")),),
        {"act.y": (("data",), (), ("model",))},
        why="one rule says all of a tensor's dims, so none is skipped; what a `?` drops is shown with the reason",
    ),
    Case(
        "13 stacked layers take the layout of one",
        "mesh: [replica=1]\nkernel: [replica]",
        ("dense.kernel: layers 2, x 3, y 3",),
        axes={"dense.kernel": ((), ("replica",), ())},
        why="the stack dim needs no name of an axis: it is whole unless a rule names it",
    ),
    Case(
        "13 an entry for the stack dim too",
        "mesh: [replica=1]\nkernel: [None, replica, None]",
        ("dense.kernel: layers 2, x 3, y 3",),
        (
            Expected(
                "SHD301", "error", "dense.kernel", None, ("3 entries for the 2 dims",), ("speaks of one layer",)
            ),
        ),
    ),
    Case(
        "15 a rule for everything does not reach counters",
        "mesh: [dp=8]\n*: [dp]\nopt: [dp]",
        ("w: x 16", "step:", "opt.mu.w: x 16", "opt.0.count:"),
        axes={"w": (("dp",),), "step": (), "opt.0.count": ()},
    ),
    Case(
        "15 an entry for a counter",
        "mesh: [dp=8]\n*: [dp]\nopt.count: [None]\nstep: replicated",
        ("w: x 16", "step:", "opt.mu.w: x 16", "opt.0.count:"),
        (Expected("SHD301", "error", "opt.0.count", None, ("1 entry for opt.0.count, which is a scalar",)),),
    ),
    Case(
        "17 sixteen ways over eight kv heads",
        "mesh: [tp=16]\nwk: [None, tp]",
        ("wk: hidden 4096, kv 1024/8",),
        (
            Expected(
                "SHD303", "error", "wk", "kv", ("tp=16 is more than the 8 heads in kv of wk",),
                ("tp in {1, 2, 4, 8} divides both 32 heads and 8 kv_heads", "spec.mesh.tp=8"),
            ),
        ),
        about={"sizes": {"heads": 32, "kv_heads": 8}},
        why="1024 elements divide by 16, and half a head would lie on each device",
    ),
    Case(
        "19 one kv head",
        "mesh: [data=1, model=2]\nattention.*.kernel: [model, data, None]\nffw_gating.kernel: [data, model]",
        GEMMA,
        (
            Expected(
                "SHD303", "error", GEMMA_KEY, "heads",
                ("model=2 is more than the 1 head of", "attention.value.kernel"),
                ("write `model?` to replicate them over model",),
            ),
        ),
    ),
    Case(
        "19 one kv head, replicated as advised",
        "mesh: [data=1, model=2]\nattention.*.kernel: [model?, data, None]\nffw_gating.kernel: [data, model]",
        GEMMA,
        (Expected("SHD307", "info", GEMMA_KEY, "heads", ("heads 1 is not a multiple of model=2",)),),
        {GEMMA_KEY: ((), ("data",), ()), "decoder_block_0.attention.query.kernel": (("model",), ("data",), ())},
    ),
    Case(
        "21 a vocabulary of 50257 over eight",
        "mesh: [tp=8]\nwte: [tp, None]",
        ("wte: vocab 50257, hidden 2048",),
        (
            Expected(
                "SHD302", "error", "wte", "vocab",
                ("vocab 50257 of wte is not a multiple of tp=8 (remainder 1)",),
                # 50257 * 2048 * 2 bytes = 205,852,672 bytes = 196.3 MiB
                ("padding to 50264 changes the checkpoint's shape", "{hidden: tp}", "196.3 MiB per device"),
            ),
        ),
        dtype="bfloat16",
    ),
    *(
        Case(f"21 vocabulary {vocab} over {ways}", f"mesh: [tp={ways}]\nwte: [tp]", (f"wte: vocab {vocab}",), expect)
        for vocab, ways, expect in (
            (32_001, 8, (Expected("SHD302", "error", "wte", "vocab", ("remainder 1",), ("32000 or 32008",)),)),
            (151_552, 6, (Expected("SHD302", "error", "wte", "vocab", ("remainder 4",), ("151548 or 151554",)),)),
            (99, 2, (Expected("SHD302", "error", "wte", "vocab", ("remainder 1",), ("98 or 100",)),)),
            (32_000, 8, ()),
            (128_256, 8, ()),
            (151_552, 8, ()),
        )
    ),
    Case(
        "24 -1 on the tensor axis, eight devices",
        "mesh: [dp=1, mp=-1]\n*: {heads: mp, kv_heads: mp}\nact: {batch: dp}",
        ("wq: embed 64, heads 32", "wk: embed 64, kv_heads 32", "act.resid: batch 4, embed 64"),
        devices=8,
    ),
    Case(
        "24 -1 on the tensor axis, 256 devices",
        "mesh: [dp=1, mp=-1]\n*: {heads: mp, kv_heads: mp}\nact: {batch: dp}",
        ("wq: embed 64, heads 32", "wk: embed 64, kv_heads 32", "act.resid: batch 128, embed 64"),
        (
            Expected(
                "SHD303", "error", "wq", "heads", ("mp=256 is more than the 32 heads of wq and the 32 kv_heads of wk",),
                ("mp was -1 and grew with the 256 devices", "spec.mesh.mp=32", "-1 to an axis that splits the batch"),
            ),
        ),
        devices=256,
        why="a head that is split is an error by itself, which says that -1 made it so",
    ),
    Case(
        "24 -1 on the data axis instead",
        "mesh: [dp=-1, mp=8]\n*: {heads: mp, kv_heads: mp}\nact: {batch: dp}",
        ("wq: embed 64, heads 32", "wk: embed 64, kv_heads 32", "act.resid: batch 128, embed 64"),
        axes={"act.resid": (("dp",), ())},
        devices=256,
    ),
    Case(
        "28 three rows per process on four ways",
        "mesh: [data=4, model=2]\nw: replicated\nbatch: [data]",
        ("w: x 8", "batch.x: batch 6"),
        (
            Expected(
                "SHD302", "error", "batch.x", "batch", ("batch 6 of batch.x is not a multiple of data=4",),
                (
                    "multiples of 4: 4, 8, 12",
                    "at 6, each of 2 processes feeds 3 rows for 2 of 4 parts",
                    "at 8, each of 2 processes feeds 4 rows",
                ),
            ),
        ),
        hosts=2,
    ),
    Case(
        "36 adapters under the rule of the weight that they adapt",
        "mesh: [fsdp=1, tp=1]\nattn.q.*: [None, None, fsdp, None]",
        ("layers.attn.q.w_lora_a: embed 2048, rank 16", "opt.mu.layers.attn.q.w_lora_a: embed 2048, rank 16"),
        (
            Expected(
                "SHD301", "error", "layers.attn.q.w_lora_a", None, ("4 entries for the 2 dims",), ("at most 2 entries",)
            ),
        ),
    ),
    Case(
        "36 adapters with rules of their own",
        "mesh: [fsdp=1, tp=1]\nw_lora_a: [fsdp, None]\nw_lora_b: [None, tp]",
        (
            "layers.attn.q.w_lora_a: embed 2048, rank 16",
            "layers.attn.q.w_lora_b: rank 16, heads 16",
            "opt.mu.layers.attn.q.w_lora_a: embed 2048, rank 16",
        ),
        axes={
            "layers.attn.q.w_lora_a": (("fsdp",), ()),
            "layers.attn.q.w_lora_b": ((), ("tp",)),
            "opt.mu.layers.attn.q.w_lora_a": (("fsdp",), ()),
        },
    ),
    Case(
        "38 the embedding by a name that this model does not use",
        "mesh: [tp=2]\nembed_tokens: [tp]",
        ("transformer.wte: vocab 50257, hidden 768",),
        (
            Expected("SHD201", "error", "embed_tokens", None, ("`embed_tokens` matches no tensor",)),
            Expected("SHD202", "error", "transformer.wte", None, ("100 % of the bytes",), ("transformer.wte:",)),
        ),
        about={"tied": True},
        why="a weight without a rule is an error, not a warning, whether or not its head is tied to it",
    ),
    Case(
        "38 the embedding by its name",
        "mesh: [tp=2]\nwte: [tp]",
        ("transformer.wte: vocab 50257, hidden 768",),
        (Expected("SHD302", "error", "transformer.wte", "vocab", ("remainder 1",), ("50256 or 50258",)),),
        about={"tied": True},
    ),
    Case(
        "40 one request on a training mesh",
        "mesh: [dp=1, fsdp=32, tp=1, sp=1]\nw: replicated\nact.logits: [(dp, fsdp), sp]",
        ("w: x 8", "act.logits: batch 1, vocab 130048"),
        (Expected("SHD308", "error", "act.logits", "batch", ("batch 1 over dp*fsdp=32",), ("multiples of 32: 32",)),),
        about={"mode": "decode"},
    ),
    Case(
        "40 one request on a serving mesh",
        "mesh: [dp=1, fsdp=1, tp=4, sp=8]\nw: replicated\nact.logits: [(dp, fsdp), sp]",
        ("w: x 8", "act.logits: batch 1, vocab 130048"),
        axes={"act.logits": (("dp", "fsdp"), ("sp",))},
        about={"mode": "decode"},
    ),
    Case(
        "42 a sequence that does not divide, within the program",
        "mesh: [tp=4]\nw: replicated\nact.norm_in: [None, tp, None]",
        ("w: x 8", "act.norm_in: batch 8, seq 2050, hidden 4096"),
        (
            Expected(
                "SHD302", "warning", "act.norm_in", "seq", ("seq 2050", "remainder 2"),
                ("another sequence length: 2048 or 2052", "XLA pads it to 2052, 513 on each device"),
            ),
        ),
    ),
    Case(
        "42 a sequence that does not divide, as an input",
        "mesh: [tp=4]\nw: replicated\nbatch: [None, tp]",
        ("w: x 8", "batch.tokens: batch 8, seq 2050"),
        (Expected("SHD302", "error", "batch.tokens", "seq", ("seq 2050",), ("2048 or 2052",)),),
    ),
    Case(
        "46 the input that a model is first traced with",
        "mesh: [dp=1, fsdp=8, tp=1, sp=1]\nw: replicated\nact.q: [(dp, fsdp), tp, sp, None]",
        ("w: x 8", "act.q: batch 1, heads 32, seq 1, head_dim 64"),
        (Expected("SHD308", "error", "act.q", "batch", ("batch 1 over dp*fsdp=8",), ("multiples of 8: 8",)),),
    ),
    Case(
        "50 what a second mesh says, as a tuple on the first",
        "mesh: [x=2, y=2]\narr: [x, y]\nout: [(x, y)]",
        ("arr: p 4, q 8", "out: p 8"),
        axes={"arr": (("x",), ("y",)), "out": (("x", "y"),)},
    ),
)  # fmt: skip
