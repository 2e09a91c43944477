"""What the suite has to know of a family to compare models of it."""
import dataclasses
import typing


@dataclasses.dataclass
class Family:
    model: typing.Callable  # of a config
    config: typing.Callable  # of keywords
    common: dict
    # name -> what differs; beside keywords of the config "save": the type of the file, "shard": the size of its parts,
    # "config_json": what becomes of the saved config, "model": in place of the family's
    variants: dict
    text: bool = True
    position_ids: bool = True  # the model takes them
    first_position: int = 0    # of the first kept token; more than 0: kept tokens are counted
    row_positions: bool = False  # it has its own, from 0 whatever is kept: the server is given the same
    pooler: bool = False
    inputs: typing.Callable = None  # of families that read no text: config -> keyword arguments for one sequence
    encoder: typing.Callable = lambda model: model
    features: typing.Callable = None  # model -> (module, "input" or "output", which are its features)
    positions: typing.Callable = None  # model -> what to take off the rows that enter layer 0 to have features
    classifier: type = None  # the model with a head that scores classes
    blank: bool = False  # tokens look at their neighbours: padding and holes are given the id 0, which says nothing
    gamma: float = 1  # of norms; less where they do not keep sums from growing
    alone: bool = False  # what the library answers depends on the padding: it is given each sequence without
