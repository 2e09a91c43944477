"""Family, what the suite has to know of a family to compare models of it."""
import dataclasses
import typing


@dataclasses.dataclass
class Family:
    model: typing.Callable  # makes a model from a config
    config: typing.Callable  # makes a config from keywords
    common: dict
    # name -> what differs: keywords of the config, and "save": the type of the file, "shard": the size of its parts,
    # "config_json": a function of the saved config, "reload": the library computes what it reads of the folder,
    # "model": replaces the family's
    variants: dict
    text: bool = True
    position_ids: bool = True  # the model takes them
    counted: bool = False      # positions count the tokens that do not have the id of padding, 1
    row_positions: int = None  # its own positions count from this one whatever is kept, so the server gets them too
    pooler: bool = False
    pooled: str = "first"  # the token that the pooler takes, kept or not: "first", "last" or the one that "end"s the text
    inputs: typing.Callable = None  # for families that read no text: config -> keyword arguments for one sequence
    encoder: typing.Callable = lambda model: model
    pixels: str = None  # the argument with images, which the server takes as features
    options: str = ""  # of --model
    features: typing.Callable = None  # model -> (module, "input" or "output"), which is where its features are
    positions: typing.Callable = None  # model -> what to subtract from the rows that enter layer 0 to get features
    classifier: type = None  # the model with a head that scores classes
    tokens: type = None  # the model with a head that scores tokens, of a family without a classifier
    blank: bool = False  # tokens look at their neighbours, so padding and holes get the id 0, which has no effect
    gamma: float = 1  # weights of norms; smaller where norms do not keep sums from growing
    masks: int = None  # an id that many tokens have
    constants: str = None  # parameters with this in their name are computed, not learned
    alone: bool = False  # the library's answers depend on padding, so it gets each sequence without
