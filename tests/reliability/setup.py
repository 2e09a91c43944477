"""What all groups of figures share: the programs, the length of the run, and what they have to say."""
import dataclasses
import pathlib
import sys

from server_process import Server


@dataclasses.dataclass
class Setup:
    build: pathlib.Path  # where the presets build
    long: bool
    wanted: set  # names of figures
    notes: list = dataclasses.field(default_factory=list)

    def program(self, name: str, preset: str = "release") -> pathlib.Path:
        return self.build / preset / "bin" / name

    def serve(self, *flags: str, **options) -> Server:
        return Server(self.program("attendant-server"), *flags, **options)

    def note(self, text: str) -> None:
        self.notes.append(text)

    @staticmethod
    def say(text: str) -> None:
        print(f"  {text}", file=sys.stderr, flush=True)
