"""Contender: one server in one configuration, as its caller sees it. `contenders` has them all."""
import abc
import dataclasses
import pathlib

MODEL_NAME = "minilm"


@dataclasses.dataclass(frozen=True)
class Place:
    """Where things are."""
    programs: pathlib.Path  # has attendant-server and attendant-client
    http_load: pathlib.Path  # the program
    work: pathlib.Path  # has `venvs`, and what is made for a server
    checkpoint: pathlib.Path  # the folder of the real MiniLM
    threads: int

    def python(self, environment: str) -> pathlib.Path:
        return self.work / "venvs" / environment / "bin" / "python"

    def site_packages(self, environment: str) -> pathlib.Path:
        return next((self.work / "venvs" / environment / "lib").glob("python*/site-packages"))

    @property
    def exported(self) -> pathlib.Path:
        """The ONNX files, as export_onnx.py leaves them."""
        return self.work / "exported"


class Contender(abc.ABC):
    name = ""
    serves = True  # or is a library in the caller's process
    caller = "caller"  # the virtual environment of the process that calls
    needs = ()  # further virtual environments
    exported = False  # whether it needs the ONNX files
    settings = ""  # for readers of the report

    def __init__(self, place: Place):
        self.place = place

    def command(self, port: int) -> list:
        """Starts the server, in the folder `self.folder`."""
        return []

    def environment(self) -> dict:
        return {}

    def prepare(self) -> None:
        """Makes the files that the server needs."""

    @property
    def folder(self) -> pathlib.Path:
        return self.place.work / self.name

    @abc.abstractmethod
    async def connect(self, port: int) -> None:
        """Opens one connection, which all calls share."""

    @abc.abstractmethod
    async def embed(self, text: str):
        """Returns the vector [E] of a text."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Closes the connection."""

    @abc.abstractmethod
    def installed(self) -> list:
        """The files and folders without which the server does not run, but for the system's Python and C libraries."""
