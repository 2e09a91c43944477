"""The named figures of a run."""
from results import CaseResult, ModelResult, Results


def _of_case(found: CaseResult, dtype: str) -> dict:
    case = found.case
    name = f"{case.model.name}.{case.name}"
    figures = {}
    if engine := found.engine_seconds():
        figures[f"tokens_per_s.{name}.{dtype}"] = case.tokens / engine.best
        figures[f"median_tokens_per_s.{name}.{dtype}"] = case.tokens / engine.median
        figures[f"gflops.{name}.{dtype}"] = case.model.flops(case.lengths) / engine.best / 1e9
    if bound := found.bound():
        figures[f"bound.{name}.{dtype}"] = found.bound_share()
        figures[f"bound_tokens_per_s.{name}.{dtype}"] = case.tokens / bound[0]
    if found.bound("bound16"):
        figures[f"bound16.{name}.{dtype}"] = found.bound_share("bound16")
    if price := found.price():
        figures[f"price.{name}.{dtype}"] = price[0] / price[1]
    if pair := found.own_over_onednn():
        figures[f"own_over_onednn.{name}.{dtype}"] = pair[1] / pair[0]
    for arrangement in found.groups:
        suffix = f".{arrangement}" if case.ragged else ""
        for peer, timing in found.peers(arrangement).items():
            figures[f"peer_tokens_per_s.{peer}.{name}{suffix}.{dtype}"] = case.tokens / timing.best
    return {**figures, **{name: found.peer_ratio(arrangement)
                          for name, arrangement in ratios_of(found, dtype).items()}}


def ratios_of(found: CaseResult, dtype: str) -> dict:
    """Returns the names of the ratios to the best peer, each with its arrangement."""
    case = found.case
    ratios = {arrangement: ratio for arrangement in found.groups
              if (ratio := found.peer_ratio(arrangement)) is not None}
    if not ratios:
        return {}
    if not case.ragged:
        return {f"peer.{case.model.name}.{case.name}.{dtype}": "arrival"}
    # Ragged sets without a model's name belong to bert-base.
    name = case.name if case.model.name == "bert-base" else f"{case.model.name}.{case.name}"
    names = {f"peer.{name}.best.{dtype}": min(ratios, key=ratios.get)}
    if "arrival" in ratios:
        names[f"peer.{name}.arrival.{dtype}"] = "arrival"
    return names


def own_ratios_of(model: ModelResult, found: CaseResult) -> dict:
    """As ratios_of, for an engine that has chosen the AMX GEMM, and for equal lengths."""
    if not model.chose_own or found.case.ragged:
        return {}
    return {name.replace("peer.", "own.", 1): arrangement
            for name, arrangement in ratios_of(found, model.dtype).items()}


def _of_model(found: ModelResult) -> dict:
    name = found.name
    figures = {}
    for case in found.cases:
        figures.update(_of_case(case, found.dtype))
        figures.update({own: case.peer_ratio(arrangement) for own, arrangement in own_ratios_of(found, case).items()})
    for contender, accuracy in found.accuracy.items():
        figures[f"accuracy.{contender}.{name}.lowest_token_cosine"] = accuracy.lowest_token_cosine
        figures[f"accuracy.{contender}.{name}.max_abs_error"] = accuracy.max_abs_error
        if accuracy.max_abs_difference is not None:
            figures[f"accuracy.{contender}.{name}.max_abs_difference"] = accuracy.max_abs_difference
        figures[f"accuracy.{contender}.{name}.agrees"] = int(accuracy.agrees)
    if found.fit:
        figures.update({f"cost.{name}.a_ms": found.fit.a * 1e3, f"cost.{name}.b_us_per_token": found.fit.b * 1e6,
                        f"cost.{name}.c_ns_per_token2": found.fit.c * 1e9, f"cost.{name}.r2": found.fit.r2})
    if found.memory:
        figures.update({f"memory.{name}.loaded_bytes": found.memory.loaded_bytes,
                        f"memory.{name}.resident_bytes": found.memory.resident_bytes,
                        f"memory.{name}.weight_bytes": found.memory.weight_bytes,
                        f"memory.{name}.activation_bytes": found.memory.touched_bytes,
                        f"memory.{name}.over_weights": found.memory.over_weights})
    return figures


def json_of(results: Results) -> dict:
    """The figures, and the reasons why others are missing: model -> {contender: reason}."""
    return {"machine": results.machine, "figures": figures_of(results),
            "refused": {model.name: model.refused for model in results.models if model.refused},
            "failures": {model.name: model.failures for model in results.models if model.failures},
            "products": {model.name: model.plans for model in results.models if model.plans},
            "notes": results.notes}


def figures_of(results: Results) -> dict:
    figures = {}
    for model in results.models:
        figures.update(_of_model(model))
    for case, stages in results.stages().items():
        for stage, seconds in stages.items():
            figures[f"stage_ms.{case}.{stage}"] = seconds * 1e3
    for name, seconds, counters in results.kernels:
        if "flops" in counters:
            figures[f"kernel_gflops.{name}"] = counters["flops"] / 1e9
        elif "elements" in counters:
            figures[f"kernel_ns_per_element.{name}"] = 1e9 / counters["elements"]
    for start in results.starts:
        figures[f"start_s.{start.model}.f32"] = start.seconds
        figures[f"start_resident_bytes.{start.model}.f32"] = start.resident_bytes
        if start.over_weights:
            figures[f"start_over_weights.{start.model}.f32"] = start.over_weights
    figures["seconds"] = results.seconds
    return figures
