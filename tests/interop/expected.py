"""What the server's own protocol answers, by the Python client; stock clients have to get the same."""
import json
import pathlib

import numpy as np
from attendant_client import Client

HERE = pathlib.Path(__file__).parent
SENTENCES = HERE.parent / "families" / "sentences.jsonl"
MODEL = "minilm"  # all-MiniLM-L6-v2
TEXTS = 4


def sentences(count: int) -> list:
    """Texts with the ids that MiniLM's tokenizer makes of them."""
    with open(SENTENCES, encoding="utf-8") as file:
        return [json.loads(next(file)) for _ in range(count)]


def padded(rows: list) -> tuple:
    """Returns ids [B, S], padded with zeros, and the mask of the others."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, mask.astype(np.int64)


def heads(client: Client, rows: list) -> dict:
    """What the models of heads.py make of token ids: scores of pairs of the first row with each other one, and scores of classes
    of rows and of tokens. The probability of a single class is a sigmoid."""
    pairs, mask = padded([rows[0] + other[1:] for other in rows[1:]])
    kinds = padded([[0] * len(rows[0]) + [1] * (len(other) - 1) for other in rows[1:]])[0]
    ids, kept = padded(rows)
    scores = client.encode("reranker", input_ids=pairs, attention_mask=mask, token_type_ids=kinds, pooling="classifier").pooled[:, 0]
    return {"rank_scores": 1 / (1 + np.exp(-scores.astype(np.float64))),
            "class_scores": client.encode("classes", input_ids=ids, attention_mask=kept, pooling="classifier").pooled,
            "tag_scores": client.encode("tags", input_ids=ids, attention_mask=kept, return_token_vectors=True).token_vectors}


def file(server) -> pathlib.Path:
    """What `write` writes about a running server."""
    path = server.folder / "expected.npz"
    if not path.exists():
        write(path, server.address)
    return path


def write(path: pathlib.Path, address: str) -> None:
    """Writes the inputs and answers that the clients' scripts compare with, as one file of NumPy's."""
    chosen = sentences(TEXTS)
    ids, mask = padded([one["ids"] for one in chosen])
    rows = np.random.default_rng(7).standard_normal((2, 9, 384)).astype(np.float32)
    kept = (np.arange(9) < np.array([[9], [5]])).astype(np.int64)
    shipped = json.loads((HERE / "data" / "perf_analyzer.json").read_text(encoding="utf-8"))["data"]
    with Client(address) as client:
        of_heads = heads(client, [one["ids"] for one in chosen])
        alone = client.encode(MODEL, input_ids=[one["input_ids"]["content"] for one in shipped], pooling="model")
        of_ids = client.encode(MODEL, input_ids=ids, attention_mask=mask, pooling="model", intermediate_layers=[2],
                               attention_layers=[5])
        raw = client.encode(MODEL, input_ids=ids, attention_mask=mask, pooling="model", normalize=True)
        of_rows = client.encode(MODEL, hidden_states=rows, attention_mask=kept)
        half = client.attend(MODEL, hidden_states=rows.astype(np.float16), attention_mask=kept, output_dtype="float32")
        attended = client.attend(MODEL, hidden_states=rows, attention_mask=kept, return_attention_probabilities=True)
    np.savez(path, ids=ids, mask=mask, texts=np.array([one["text"] for one in chosen]),
             last_hidden_state=of_ids.hidden_states, sentence_embedding=of_ids.pooled, normalized=raw.pooled,
             hidden_states_2=of_ids.intermediate[2], attentions_5=of_ids.attention_probabilities[5],
             perf_analyzer=alone.pooled, rows=rows, kept=kept, rows_hidden=of_rows.hidden_states, context=attended.output,
             context_of_half=half.output, probabilities=attended.attention_probabilities, **of_heads)
