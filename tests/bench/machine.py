"""What the machine is, and which peers it has."""
import json
import pathlib
import subprocess

_PEER_PACKAGES = ("openvino", "nncf", "onnxruntime", "ctranslate2", "torch", "transformers", "llama_cpp_python")


def peer_versions(python: pathlib.Path) -> str:
    """The versions of the peers in their environment."""
    listed = subprocess.run([str(python), "-m", "pip", "list", "--format", "json"], capture_output=True, text=True,
                            check=True).stdout
    installed = {package["name"]: package["version"] for package in json.loads(listed)}
    return ", ".join(f"{name} {installed.get(name, '(missing)')}" for name in _PEER_PACKAGES)


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"
