"""bulk_rows.py TEXTS VECTORS ADDRESS: compares the rows that a Spark job has written with direct calls to one server, and prints
how many are wrong, in which way, as JSON. Runs where PySpark's packages are."""
import collections
import json
import sys

import numpy as np
import pyarrow.parquet
from attendant_client import Client
from attendant_client.text import TextModel


def main() -> None:
    texts_file, vectors_folder, address = sys.argv[1:]
    with open(texts_file, encoding="utf-8") as file:
        texts = {row["id"]: row["text"] for row in map(json.loads, file)}
    written = pyarrow.parquet.read_table(vectors_folder).to_pydict()
    times = collections.Counter(written["id"])
    with Client(address) as client:
        known = dict(zip(texts, TextModel(client, "minilm").embed(list(texts.values()), progress=False)))
    differ = sum(number not in known or not np.array_equal(np.asarray(vector, np.float32), known[number])
                 for number, vector in zip(written["id"], written["vector"]))
    print(json.dumps({"missing": len(texts.keys() - times.keys()), "doubled": sum(count > 1 for count in times.values()),
                      "with other vectors": differ}))


if __name__ == "__main__":
    main()
