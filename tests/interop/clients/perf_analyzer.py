"""perf_analyzer, Triton's load generator. It sends real ids and verifies the answers itself, and sends random data and zeros for
every input in the metadata."""
import csv
import json
import pathlib
import re
import tempfile

import common
import programs

SHIPPED = pathlib.Path(__file__).parents[1] / "data" / "perf_analyzer.json"
ROWS = ("--shape", "hidden_states:32,384", "--shape", "attention_mask:32")


def with_answers(folder: pathlib.Path, expected: dict, error: float) -> pathlib.Path:
    """The shipped requests with the native answers, off by `error`."""
    data = json.loads(SHIPPED.read_text(encoding="utf-8"))
    data["validation_data"] = [{"sentence_embedding": {"content": [float(x) + error for x in row], "shape": [384]}}
                               for row in expected["perf_analyzer"]]
    path = folder / f"answers-{error:g}.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def check(checks, options, expected):
    def analyze(model, *arguments):
        """Three windows at concurrency 2, whether stable or not; returns the process and the rows of its report."""
        report = folder / f"{model}.csv"
        report.unlink(missing_ok=True)
        done = programs.run(options.perf_analyzer, "-m", model, "-i", "grpc", "-u", options.grpc, "--concurrency-range", 2, "-p",
                            400, "-s", 999, "-r", 5, "-f", report, *arguments, LD_LIBRARY_PATH=options.cuda)
        return done, list(csv.DictReader(report.open())) if report.exists() else []

    def measures(what, model, *arguments):
        done, rows = analyze(model, *arguments)
        checks.that(what, done.returncode == 0 and float(rows[0]["Inferences/Second"]) > 0 and
                    float(rows[0]["Server Compute Infer"]) > 0, (done.stdout + done.stderr)[-300:])

    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        measures("NAME, --input-data of the project", "minilm", "--input-data", SHIPPED)
        measures("answers verified by it", "minilm", "--input-data", with_answers(folder, expected, 0.0))
        done, _ = analyze("minilm", "--input-data", with_answers(folder, expected, 1e-5))
        checks.that("and wrong ones found", done.returncode != 0 and "match" in done.stdout + done.stderr, done.stdout[-300:])
        measures("NAME.hidden, random bytes", "minilm.hidden", *ROWS)
        measures("NAME.hidden, --input-data zero", "minilm.hidden", *ROWS, "--input-data", "zero")
        measures("NAME, --input-data zero", "minilm", "--shape", "input_ids:16", "--shape", "attention_mask:16", "--shape",
                 "token_type_ids:16", "--input-data", "zero")
        measures("NAME.text, random texts", "minilm.text", "--string-length", 40, "-b", 3)
        measures("NAME.text, pairs for a reranker", "reranker.text", "--string-data", "hello world")
        measures("batches of 4", "minilm.hidden", *ROWS, "-b", "4")


def version() -> str:
    done = programs.run(common.options().perf_analyzer, "--version", LD_LIBRARY_PATH=common.options().cuda)
    found = re.search(r"Version (\S+)", done.stdout + done.stderr)
    if not found:
        raise RuntimeError(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}")
    return found[1]


if __name__ == "__main__":
    common.run(version, check)
