"""Makes embeddings.npz, what PyTorch makes of the first sentences of sentences.txt, whose tokens are in tokens.txt: ./tessera fixtures

    fixtures.py <folder of the model>"""
import os
import sys

import numpy as np
import torch

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "bench", "peers"))
from bert import padded, pytorch_encoder, read_safetensors  # noqa: E402

COUNT = 16

with open(os.path.join(here, "tokens.txt"), encoding="ascii") as file:
    tokens = [[int(t) for t in line.split()] for line in file][:COUNT]
vectors = pytorch_encoder(read_safetensors(os.path.join(sys.argv[1], "model.safetensors")))(*map(torch.from_numpy, padded(tokens)))
np.savez_compressed(os.path.join(here, "embeddings.npz"), vectors=vectors.numpy())
print(f"{COUNT} embeddings of PyTorch {torch.__version__}")
