"""The report's table of the figures that have a target."""
from figures import figures_of, own_figures_of, peer_figures_of, ratios_of
from results import Results
from targets import limits, reached, targets

TARGET_HEAD = ["figure", "value", "spread", "rounds", "target", "", "remark"]
DISAGREES = "does not agree"


def _beside(results: Results) -> dict:
    """Ratio to a peer -> the peer, and the distance of its answers from the model's."""
    beside = {}
    for model in results.models:
        for found in model.cases:
            peers = peer_figures_of(found, model.dtype) | own_figures_of(model, found)
            for name, arrangement in peers.items():
                peer = found.best_peer(arrangement)
                accuracy = model.accuracy.get(peer)
                beside[name] = f"{peer}, cosine >= {accuracy.lowest_token_cosine:.4f}" if accuracy else peer
                if accuracy and not accuracy.agrees:
                    beside[name] += f": {DISAGREES}"
    return beside


def target_rows(results: Results) -> list:
    """Figure, value, lowest and highest round, number of rounds, target, whether it is reached, and a remark, for every
    figure that has a target."""
    figures, ratios, beside = figures_of(results), ratios_of(results), _beside(results)
    verdicts = {name: (f">= {wanted:g}", reached(name, figures[name], wanted))
                for name, wanted in targets(results.machine["isa"]).items() if name in figures}
    verdicts |= {name: (f"<= {greatest:g}", figures[name] <= greatest)
                 for name, greatest in limits().items() if name in figures}
    rows = []
    for name, (target, is_reached) in verdicts.items():
        ratio = ratios.get(name)
        rows.append((name, f"{figures[name]:.4g}", ratio.spread() if ratio else "", len(ratio.rounds) if ratio else "",
                     target, "reached" if is_reached else "missed", beside.get(name, "")))
    return rows
