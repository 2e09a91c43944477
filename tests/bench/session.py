"""Session, which measures one model in one data type: it starts the contenders, runs the cases and compares the
answers."""
import json
import pathlib
import sys

import numpy as np

from agreement import NotAnAnswer, judge
from cases import TokenIds, arrangements, engine_batches
from contenders import Contender
from cost_model import fit_costs
from results import CaseResult, Memory, ModelResult
from rounds import Entrant, run_rounds
from worker_process import WorkerFailed, WorkerProcess, resident_bytes

START_TIMEOUT = 1200  # a peer may have to convert the checkpoint first


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


class Session:
    """Owns the workers of one model in one data type. To be used in a `with` statement."""

    def __init__(self, model, dtype: str, ids: TokenIds, work: pathlib.Path):
        self.result = ModelResult(model, dtype)
        self._ids = ids
        self._work = work
        self._workers = {}  # contender -> WorkerProcess
        self._contenders = {}
        self._loaded_bytes = 0  # the engine's, before its first case

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        self.stop(*[contender.role for contender in self._contenders.values()])

    def stop(self, *roles: str) -> None:
        """Ends the contenders in these roles."""
        for name, contender in self._contenders.items():
            if contender.role in roles and name in self._workers:
                self._workers.pop(name).close()

    @property
    def engine(self) -> WorkerProcess | None:
        return self._workers.get("attendant")

    def start(self, contender: Contender) -> bool:
        name = f"{contender.name}.{self.result.model.name}.{self.result.dtype}"
        say(f"starting {name}")
        try:
            worker = WorkerProcess(list(contender.command), contender.environment, self._work / f"{name}.log",
                                   START_TIMEOUT)
        except (WorkerFailed, OSError) as error:
            self._fail(contender.name, error)
            return False
        self._workers[contender.name] = worker
        self._contenders[contender.name] = contender
        if contender.role == "engine":
            self._loaded_bytes = resident_bytes(worker.pid)["VmRSS"]
        return True

    def _fail(self, name: str, reason) -> None:
        say(f"{name}: {reason}")
        self.result.failures[name] = str(reason)
        if name in self._workers:
            self._workers.pop(name).close()

    def measure(self, case) -> None:
        """Measures the case in each arrangement, or once if no contender needs another one."""
        found = self._result_of(case)
        sequences = self._ids.sequences(case.lengths)
        for arrangement, batches in arrangements(case).items():
            roles = {"engine", "peer"}
            if not found.groups:
                roles |= self._roles_once(case)
            entrants = self._enter(case, sequences, batches, roles)
            if found.groups and not any(entrant.is_peer for entrant in entrants):
                break
            if not self._measure_group(found, arrangement, entrants):
                break

    def measure_alone(self, case) -> None:
        """Measures the engine beside its bound only, in a group of its own, before peers start that would leave no
        memory for both."""
        entrants = self._enter(case, self._ids.sequences(case.lengths), [], {"engine"} | self._roles_once(case))
        self._measure_group(self._result_of(case), "alone", entrants)

    def _result_of(self, case) -> CaseResult:
        return next((found for found in self.result.cases if found.case == case), CaseResult(case))

    def _measure_group(self, found: CaseResult, arrangement: str, entrants: list) -> bool:
        """Adds a group to the case, which it adds to the result; false: the engine has failed, or everybody."""
        say(f"{found.case.model.name} {found.case.name} {arrangement} {self.result.dtype}")
        run_rounds(entrants, found.best_peer_seconds())
        for entrant in entrants:
            if entrant.failure:
                self._fail(entrant.name, entrant.failure)
        group = {entrant.name: entrant.timing for entrant in entrants
                 if entrant.timing.rounds and not entrant.failure}
        if not group or ("attendant" not in group and not self.result.refused):
            return False
        if not found.groups:
            self.result.cases.append(found)
        found.groups[arrangement] = group
        if self.result.memory is None:  # in later cases the heap still has memory of earlier ones
            self._weigh()
        return True

    @staticmethod
    def _roles_once(case) -> set:
        """The roles that take part in only one group of a case."""
        return ({"bound", "onednn"} | ({"bound16"} if case.short else set()) |
                ({"products"} if case.priced else set()) | ({"form"} if case.in_forms else set()))

    def _enter(self, case, sequences: list, peer_batches: list, roles: set) -> list:
        entrants = []
        for name, contender in list(self._contenders.items()):
            is_peer = contender.role == "peer"
            # Several batches in flight do not tell the time of one call.
            unfit = contender.role not in roles or (is_peer and not case.with_peers) or (
                case.latency and contender.streams > 1)
            if unfit or name not in self._workers:
                continue
            batches = peer_batches if is_peer else engine_batches(case)
            copies = contender.streams if len(batches) == 1 else 1
            if self._prepare(name, batches * copies, sequences):
                entrants.append(Entrant(name, contender.role, self._workers[name], copies, contender.streams))
        return entrants

    def _prepare(self, name: str, batches: list, sequences: list) -> bool:
        file = self._work / "case.json"
        file.write_text(json.dumps({"batches": [[sequences[i] for i in batch] for batch in batches]}),
                        encoding="utf-8")
        try:
            self._workers[name].prepare(file)
        except WorkerFailed as error:
            self._fail(name, error)
            return False
        return True

    def answers(self, name: str, sequences: list, batch: int) -> np.ndarray | None:
        """Returns the last hidden states [T, E] of the sequences in their order, computed in batches of `batch`."""
        order = list(range(len(sequences)))
        batches = [order[i:i + batch] for i in range(0, len(order), batch)]
        file = self._work / f"answers.{name}"
        if name not in self._workers or not self._prepare(name, batches, sequences):
            return None
        try:
            self._workers[name].save(file)
        except WorkerFailed as error:
            self._fail(name, error)
            return None
        found = np.fromfile(file, np.float32).astype(np.float64)
        width = self.result.model.hidden_size
        return found.reshape(-1, width) if found.size % width == 0 else found

    def compare(self, sequences: list, batch: int, expect) -> None:
        """Checks the answers of the engine and of every peer against those of `expect()`, and excludes contenders with
        answers of another model. All contenders have ended by then, because float64 takes much memory."""
        answers = {name: self.answers(name, sequences, batch) for name, contender in list(self._contenders.items())
                   if contender.role in ("engine", "onednn", "peer")}
        self.close()
        expected = expect()
        ours = answers.get("attendant")
        for name, theirs in answers.items():
            if theirs is None or expected is None:
                continue
            try:
                self.result.accuracy[name] = judge(self.result.dtype, theirs, expected,
                                                   ours if ours is not None and ours.shape == theirs.shape else None)
            except NotAnAnswer as error:
                self._fail(name, f"excluded: {error}")
                self.result.exclude(name)

    def fit(self, length_sets: list) -> None:
        if self.engine is not None:
            self.result.fit = fit_costs(lambda lengths: self._engine_seconds(lengths), length_sets)

    def _engine_seconds(self, lengths: list) -> float:
        self._prepare("attendant", [list(range(len(lengths)))], self._ids.sequences(lengths))
        return min(self.engine.run(4)[1:])

    def _weigh(self) -> None:
        if self.engine is not None:
            facts, now = self.engine.facts(), resident_bytes(self.engine.pid)
            self.result.memory = Memory(self._loaded_bytes, now["VmRSS"], now["RssFile"], facts["weight_bytes"],
                                        facts["run_bytes"])
