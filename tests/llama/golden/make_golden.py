"""Makes the golden files beside it: what Hugging Face transformers computes from the same weights.

    python -m tests.llama.golden.make_golden path/to/SmolLM2-135M-Instruct.Q4_1.gguf

Needs torch, transformers, accelerate, gguf, safetensors, sentencepiece and regex, none of which the tests need. Writes

- `smollm2_135m.npz`: logits and greedy continuations of SmolLM2-135M-Instruct, dequantized and run in float32;
- `smollm2_tokens.json`: token ids of awkward texts under that model's tokenizer;
- `tiny/`: a random two-shard bfloat16 checkpoint in the Hugging Face layout (untied head, grouped queries, llama3
  rotary scaling, a head_dim that is not embed/heads) with a tokenizer trained on the spot;
- `tiny.npz`: its logits;
- `sentencepiece.json`: a small SentencePiece BPE vocabulary as a GGUF file holds one, and what SentencePiece makes of
  the awkward texts with it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import regex
import sentencepiece
import tokenizers
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from tests.llama.golden.texts import CHATS, LONG, TRICKY

HERE = Path(__file__).resolve().parent
COLUMNS = 200
TOP = 50
NEW_TOKENS = 64
Array = np.ndarray[Any, Any]


def versions() -> Array:
    """The versions that made a file, kept inside it."""
    modules = (torch, transformers, tokenizers, np)
    parts = [f"{module.__name__} {module.__version__}" for module in modules]
    return np.array(", ".join([*parts, f"gguf {importlib.metadata.version('gguf')}"]))


def logits_of(model: Any, ids: Sequence[int]) -> Array:
    """Float32 logits, (tokens, vocab)."""
    with torch.inference_mode():
        return np.asarray(model(torch.tensor([list(ids)])).logits[0].float().numpy())


def digest(prefix: str, ids: Sequence[int], logits: Array, positions: Array) -> dict[str, Array]:
    """What is kept of (tokens, vocab) logits: argmax and logsumexp everywhere; some columns and the best at some."""
    columns = np.random.default_rng(0).choice(logits.shape[1], size=COLUMNS, replace=False)
    some = logits[positions]
    top = np.argsort(-some, axis=-1)[:, :TOP]
    peak = logits.max(axis=-1, keepdims=True)
    return {
        f"{prefix}.ids": np.asarray(ids, np.int32),
        f"{prefix}.argmax": logits.argmax(axis=-1).astype(np.int32),
        f"{prefix}.logsumexp": (peak[:, 0] + np.log(np.exp(logits - peak).sum(axis=-1))).astype(np.float32),
        f"{prefix}.positions": positions.astype(np.int32),
        f"{prefix}.columns": np.sort(columns).astype(np.int32),
        f"{prefix}.at_columns": some[:, np.sort(columns)].astype(np.float32),
        f"{prefix}.top_ids": top.astype(np.int32),
        f"{prefix}.top_logits": np.take_along_axis(some, top, axis=-1).astype(np.float32),
    }


def continuation(model: Any, ids: Sequence[int]) -> tuple[Array, Array]:
    """64 greedy tokens after `ids`, stop tokens not obeyed; and by how much each beat the second best."""
    new: list[int] = []
    gaps: list[float] = []
    with torch.inference_mode():
        step = model(torch.tensor([list(ids)]), use_cache=True)
        for _ in range(NEW_TOKENS):
            best = torch.topk(step.logits[0, -1], 2)
            new.append(int(best.indices[0]))
            gaps.append(float(best.values[0] - best.values[1]))
            step = model(torch.tensor([[new[-1]]]), cache=step.cache, use_cache=True)
    return np.asarray(new, np.int32), np.asarray(gaps, np.float32)


def smollm_tokenizer(file: Path) -> Any:
    """A transformers tokenizer over the GGUF's vocabulary, with the pre-tokenizer that the model was published with."""
    fast = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    fast.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return fast


def byte_alphabet() -> dict[int, str]:
    """GPT-2's printable stand-ins: printable Latin-1 bytes are themselves, the others follow from U+0100 in order."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in own]
    return {b: chr(b) for b in own} | {b: chr(256 + i) for i, b in enumerate(rest)}


def reference_encode(text: str, vocab: dict[str, int], ranks: dict[tuple[str, str], int]) -> list[int]:
    """Byte-level BPE written out plainly, with llama.cpp's expressions for `smollm`: a second opinion."""
    gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    alphabet = byte_alphabet()
    ids: list[int] = []
    for run in regex.findall(r"\p{N}|[^\p{N}]+", text):
        for word in regex.findall(gpt2, run):
            parts = [alphabet[b] for b in word.encode()]
            while True:
                pairs = list(itertools.pairwise(parts))
                best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)), default=None)
                if best is None or best not in ranks:
                    break
                at = pairs.index(best)
                parts[at : at + 2] = ["".join(best)]
            ids += [vocab[part] for part in parts]
    return ids


def make_smollm2_tokens(file: Path) -> Any:
    fast = smollm_tokenizer(file)
    state = json.loads(fast.backend_tokenizer.to_str())["model"]
    ranks = {(left, right): rank for rank, (left, right) in enumerate(state["merges"])}
    plain, special = [], []
    for text in TRICKY:
        special.append(fast.backend_tokenizer.encode(text, add_special_tokens=False).ids)
        plain.append(reference_encode(text, state["vocab"], ranks))
        if not any(token in text for token in fast.all_special_tokens):
            fast.backend_tokenizer.encode_special_tokens = True
            library = fast.backend_tokenizer.encode(text, add_special_tokens=False).ids
            fast.backend_tokenizer.encode_special_tokens = False
            assert library == plain[-1], f"two implementations disagree on {text!r}"
    chats = [
        fast.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=True, return_dict=False
        )
        for text in CHATS
    ]
    rows = [{"text": t, "plain": p, "special": s} for t, p, s in zip(TRICKY, plain, special, strict=True)]
    lines = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
    chat_lines = ",\n".join(json.dumps({"user": t, "ids": c}) for t, c in zip(CHATS, chats, strict=True))
    made_by = json.dumps(str(versions()))
    (HERE / "smollm2_tokens.json").write_text(
        f'{{"made_by": {made_by},\n"texts": [\n{lines}\n],\n"chats": [\n{chat_lines}\n]}}\n', encoding="utf-8"
    )
    return fast


def make_smollm2(file: Path) -> None:
    fast = make_smollm2_tokens(file)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    digest_of_file = hashlib.sha256(file.read_bytes()).hexdigest()
    data: dict[str, Array] = {"made_by": versions(), "gguf_sha256": np.array(digest_of_file)}
    long = fast.backend_tokenizer.encode(LONG, add_special_tokens=False).ids
    data |= digest("long", long, logits_of(model, long), np.linspace(0, len(long) - 1, 12).astype(int))
    for number, text in enumerate(CHATS):
        ids = fast.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=True, return_dict=False
        )
        data |= digest(f"chat{number}", ids, logits_of(model, ids), np.array([0, len(ids) // 2, len(ids) - 1]))
        new, gaps = continuation(model, ids)
        data |= {f"chat{number}.greedy": new, f"chat{number}.gaps": gaps}
        print(fast.decode(new), "smallest gap", gaps.min())
    np.savez_compressed(HERE / "smollm2_135m.npz", **data)  # type: ignore[arg-type]


def make_tiny() -> None:
    folder = HERE / "tiny"
    tokenizer = Tokenizer(models.BPE())
    split = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    split += r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(split), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|begin|>", "<|end|>", "<|turn|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([LONG, *TRICKY], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))]
    )
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>")
    fast.chat_template = (
        "{{ bos_token }}{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] | trim }}"
        "<|end|>\n{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
    )
    config = transformers.LlamaConfig(
        vocab_size=384,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        rms_norm_eps=1e-6,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.15,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    )
    torch.manual_seed(0)
    made = transformers.LlamaForCausalLM(config)
    for name, weight in made.named_parameters():
        if "norm" in name:  # not all ones, so that a forgotten or swapped scale shows
            torch.nn.init.uniform_(weight, 0.5, 1.5)
    made.to(torch.bfloat16).save_pretrained(folder, max_shard_size="200KB")
    fast.save_pretrained(folder)
    model = transformers.LlamaForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    ids = fast(LONG)["input_ids"][:120]
    assert ids[0] == 0
    chat = fast.apply_chat_template(
        [{"role": "system", "content": "Be <|end|> brief. "}, {"role": "user", "content": "Hi"}],
        add_generation_prompt=True,
        tokenize=False,
    )
    np.savez_compressed(
        HERE / "tiny.npz",
        made_by=versions(),
        ids=np.asarray(ids, np.int32),
        logits=logits_of(model, ids),
        chat=np.array(chat),
        tricky=np.array(json.dumps([tokenizer.encode(text, add_special_tokens=False).ids for text in TRICKY])),
    )


def make_sentencepiece() -> None:
    """Trained as Llama 1 and 2's was: byte fallback, digits apart, spaces kept, a space put before the text."""
    with tempfile.TemporaryDirectory() as scratch:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*LONG.splitlines(), *TRICKY, *CHATS]),
            model_prefix=f"{scratch}/m",
            model_type="bpe",
            vocab_size=560,
            character_coverage=0.98,
            byte_fallback=True,
            split_digits=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True,
            num_threads=1,
            minloglevel=2,
        )
        processor = sentencepiece.SentencePieceProcessor(model_file=f"{scratch}/m.model")
    numbers = range(processor.get_piece_size())
    kinds = [
        2 if processor.is_unknown(i) else 3 if processor.is_control(i) else 6 if processor.is_byte(i) else 1
        for i in numbers
    ]
    golden = {
        "made_by": f"sentencepiece {sentencepiece.__version__}",
        "tokens": [processor.id_to_piece(i) for i in numbers],
        "scores": [processor.get_score(i) for i in numbers],
        "types": kinds,
        "ids": [processor.encode(text) for text in [LONG, *TRICKY]],
    }
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items())
    (HERE / "sentencepiece.json").write_text(f"{{{lines}}}\n", encoding="utf-8")


if __name__ == "__main__":
    transformers.utils.logging.disable_progress_bar()
    make_sentencepiece()
    make_tiny()
    make_smollm2(Path(sys.argv[1]))
