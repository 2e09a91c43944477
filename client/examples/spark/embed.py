"""Embeds a data set of texts with PySpark and the replicas of a server, and writes the vectors with the ids.

    spark-submit embed.py --target dns:///attendant-headless:8001 --model minilm INPUT OUTPUT

INPUT has the columns `id` and `text`; OUTPUT gets `id` and `vector`, as Parquet. Each partition is a task with its own
client, which calls the replicas in turn. Spark repeats a failed task, for example after a replica is killed, and uses only the
rows of successful tasks."""
import argparse
import time

import pandas as pd
from pyspark.sql import SparkSession

TEXTS_PER_BATCH = 64  # of a call, which goes to one replica: enough to fill its batches, few enough to balance


def embedder(target: str, model: str):
    """Returns the function for mapInPandas."""
    def embed(batches):
        from attendant_client import Client
        from attendant_client.text import TextModel
        with Client(target) as client:
            texts = TextModel(client, model)
            for batch in batches:
                vectors = texts.embed(batch["text"].tolist(), progress=False)
                yield pd.DataFrame({"id": batch["id"], "vector": list(vectors)})

    return embed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True, help="all replicas: dns:///NAME:PORT, or ipv4:ADDRESS:PORT,ADDRESS:PORT")
    parser.add_argument("--model", required=True)
    parser.add_argument("--format", default="parquet", help="of the input: parquet, json or another one that Spark reads")
    parser.add_argument("--partitions", type=int, default=32, help="tasks; a multiple of the cores of the executors")
    parser.add_argument("input")
    parser.add_argument("output")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("embed").getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", TEXTS_PER_BATCH)
    rows = spark.read.load(arguments.input, format=arguments.format).select("id", "text").repartition(arguments.partitions)
    begin = time.monotonic()
    vectors = rows.mapInPandas(embedder(arguments.target, arguments.model), "id long, vector array<float>")
    vectors.write.mode("overwrite").parquet(arguments.output)
    seconds = time.monotonic() - begin
    print(f"{spark.read.parquet(arguments.output).count()} rows in {seconds:.1f} s")
    spark.stop()


if __name__ == "__main__":
    main()
