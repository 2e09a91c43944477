"""All contenders, in the order in which they are measured: the others first, for Attendant is also measured at their rates."""
from in_process import SentenceTransformers
from infinity import InfinityOnnx, InfinityTorch
from ml_server import MlServer
from own import Attendant
from triton_server import Triton

CONTENDERS = {kind.name: kind for kind in (SentenceTransformers, InfinityTorch, InfinityOnnx, Triton, MlServer, Attendant)}
