"""The named figures of a run."""
from results import CaseResult, ModelResult, Results
from stages import is_kernel, roofs_of, stages_of


def _of_case(found: CaseResult, dtype: str) -> dict:
    case = found.case
    name = f"{case.model.name}.{case.name}"
    figures = {}
    if engine := found.engine_seconds():
        figures[f"tokens_per_s.{name}.{dtype}"] = case.tokens / engine.best
        figures[f"median_tokens_per_s.{name}.{dtype}"] = case.tokens / engine.median
        figures[f"gflops.{name}.{dtype}"] = case.model.flops(case.lengths) / engine.best / 1e9
    if share := found.bound_share():
        figures[f"bound_tokens_per_s.{name}.{dtype}"] = case.tokens / share.other.best
    for arrangement in found.groups:
        suffix = f".{arrangement}" if case.ragged else ""
        for peer, timing in found.peers(arrangement).items():
            figures[f"peer_tokens_per_s.{peer}.{name}{suffix}.{dtype}"] = case.tokens / timing.best
    return figures


def peer_figures_of(found: CaseResult, dtype: str) -> dict:
    """Returns the names of the ratios to the best peer, each with its arrangement."""
    case = found.case
    ratios = {arrangement: ratio for arrangement in found.groups if (ratio := found.peer_ratio(arrangement))}
    if not ratios:
        return {}
    if not case.ragged:
        return {f"peer.{case.model.name}.{case.name}.{dtype}": "arrival"}
    # Ragged sets without a model's name belong to bert-base.
    name = case.name if case.model.name == "bert-base" else f"{case.model.name}.{case.name}"
    # Rounds ended early in an arrangement that is better for no peer.
    best = min(ratios, key=lambda arrangement: (not ratios[arrangement].complete, ratios[arrangement].median))
    names = {f"peer.{name}.best.{dtype}": best}
    if "arrival" in ratios:
        names[f"peer.{name}.arrival.{dtype}"] = "arrival"
    return names


def own_figures_of(model: ModelResult, found: CaseResult) -> dict:
    """As peer_figures_of, for an engine that has chosen the AMX GEMM, and for equal lengths."""
    if not model.chose_tiles or found.case.ragged:
        return {}
    return {name.replace("peer.", "own.", 1): arrangement
            for name, arrangement in peer_figures_of(found, model.dtype).items()}


def ratios_of(results: Results) -> dict:
    """Figure -> Ratio, for the figures that are shares or ratios of two contenders' speeds."""
    ratios = {}
    for model in results.models:
        for found in model.cases:
            name = f"{model.model.name}.{found.case.name}.{model.dtype}"
            own = {f"bound.{name}": found.bound_share(), f"bound16.{name}": found.bound_share("bound16"),
                   f"price.{name}": found.price(), f"own_over_onednn.{name}": found.own_over_onednn(),
                   f"stored.{model.model.name}.{found.case.name}.bf16_file": found.stored(),
                   f"int8_over_f32.{model.model.name}.{found.case.name}": found.int8_over_f32()}
            # A case has the last two names in every type, but a ratio in only one.
            ratios |= {figure: ratio for figure, ratio in own.items() if ratio}
            peers = peer_figures_of(found, model.dtype) | own_figures_of(model, found)
            ratios |= {figure: found.peer_ratio(arrangement) for figure, arrangement in peers.items()}
    return {figure: ratio for figure, ratio in ratios.items() if ratio}


def _of_model(found: ModelResult) -> dict:
    name = found.name
    figures = {}
    for case in found.cases:
        figures.update(_of_case(case, found.dtype))
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


def _of_stages(kernels: list) -> dict:
    figures = {f"roof_gops.{dtype}": rate / 1e9 for dtype, rate in roofs_of(kernels).items()}
    for case, stages in stages_of(kernels).items():
        for name, stage in stages.items():
            figures[f"stage_ms.{case}.{name}"] = stage.seconds * 1e3
            figures[f"stage_{stage.unit}.{case}.{name}"] = stage.rate / 1e9
            if stage.share:
                figures[f"stage_share.{case}.{name}"] = stage.share
    return figures


def json_of(results: Results) -> dict:
    """The figures, the spread of those that are medians of rounds, and the reasons why others are missing: model ->
    {contender: reason}."""
    return {"machine": results.machine, "seed": results.seed, "figures": figures_of(results),
            "spreads": {figure: {"lowest": ratio.lowest, "highest": ratio.highest, "rounds": len(ratio.rounds)}
                        for figure, ratio in ratios_of(results).items()},
            "refused": {model.name: model.refused for model in results.models if model.refused},
            "failures": {model.name: model.failures for model in results.models if model.failures},
            "products": {model.name: model.plans for model in results.models if model.plans},
            "notes": results.notes}


def figures_of(results: Results) -> dict:
    figures = {}
    for model in results.models:
        figures.update(_of_model(model))
    figures.update({figure: ratio.median for figure, ratio in ratios_of(results).items()})
    figures.update(_of_stages(results.kernels))
    for name, _, counters in results.kernels:
        if not is_kernel(name):
            continue
        if "flops" in counters:
            figures[f"kernel_gflops.{name}"] = counters["flops"] / 1e9
        elif "elements" in counters:
            figures[f"kernel_ns_per_element.{name}"] = 1e9 / counters["elements"]
    for start in results.starts:
        figures[f"start_s.{start.model}.f32"] = start.seconds
        figures[f"start_resident_bytes.{start.model}.f32"] = start.resident_bytes
        if start.over_weights:
            figures[f"start_over_weights.{start.model}.f32"] = start.over_weights
    if results.cache_hits:
        figures["cache.hit_us"] = results.cache_hits.seconds * 1e6
    figures["seconds"] = results.seconds
    return figures
