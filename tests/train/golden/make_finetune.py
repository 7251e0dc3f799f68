"""Makes `finetune.json` beside it: losses of a short fine-tune by Hugging Face transformers and torch's AdamW.

    python -m tests.train.golden.make_finetune path/to/SmolLM2-135M-Instruct.Q4_1.gguf

Needs torch, transformers, accelerate and gguf, of which the tests need gguf alone. The weights are dequantized to
float32; each step sees another batch. The token ids of the batches are kept in the file, with what was used to make it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

HERE = Path(__file__).resolve().parent
ROWS, SEQ = 2, 32
LR, DECAY, BETAS, EPS, CLIP = 1e-4, 0.1, (0.9, 0.95), 1e-8, 1.0
IGNORED = ((0, 31), (1, 5), (1, 6))
"""(row, column) of targets that do not count, besides the last token's, which has none."""

STEPS = 4
TEXT = """\
Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once
or twice she had peeped into the book her sister was reading, but it had no pictures or conversations in it,
"and what is the use of a book," thought Alice "without pictures or conversations?" So she was considering in
her own mind (as well as she could, for the hot day made her feel very sleepy and stupid), whether the
pleasure of making a daisy-chain would be worth the trouble of getting up and picking the daisies, when
suddenly a White Rabbit with pink eyes ran close by her. There was nothing so very remarkable in that; nor did
Alice think it so very much out of the way to hear the Rabbit say to itself, "Oh dear! Oh dear! I shall be
late!" But when the Rabbit actually took a watch out of its waistcoat-pocket, and looked at it, and then
hurried on, Alice started to her feet.
"""


def main(file: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager"
    )
    model.train()
    ids = torch.tensor(tokenizer(TEXT, add_special_tokens=False).input_ids[: STEPS * ROWS * SEQ // 2])
    ids = torch.cat([ids, ids.flip(0)])[: STEPS * ROWS * SEQ].reshape(STEPS, ROWS, SEQ)
    decays = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decays, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
        lr=LR,
        betas=BETAS,
        eps=EPS,
    )
    losses, norms = [], []
    for tokens in ids:
        targets = torch.cat([tokens[:, 1:], torch.full((ROWS, 1), -100)], dim=1)
        for row, column in IGNORED:
            targets[row, column] = -100
        logits = model(tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
        optimizer.step()
        losses.append(float(loss.detach()))
    made = {
        "made_with": f"torch {torch.__version__}, transformers {transformers.__version__}",
        "ids": ids.tolist(),
        "ignored": IGNORED,
        "loss": losses,
        "grad_norm": norms,
    }
    (HERE / "finetune.json").write_text(json.dumps(made) + "\n", encoding="utf-8")
    print(losses, norms)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
