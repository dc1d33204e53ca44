"""The forward pass of all-MiniLM-L6-v2 in NumPy, in double."""
import numpy as np
from scipy.special import erf

HEADS, LAYERS = 12, 6


class Bert:
    def __init__(self, weights):
        self.weights = {name: w.astype("f8") for name, w in weights.items()}

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-12) * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def layer(self, x, name, keep):
        sentences, tokens, width = x.shape

        def heads(part):
            return self.linear(x, f"{name}.attention.self.{part}").reshape(sentences, tokens, HEADS, -1).transpose(0, 2, 1, 3)
        q, k, v = heads("query"), heads("key"), heads("value")
        scores = np.where(keep[:, None, None, :], q @ k.transpose(0, 1, 3, 2) / np.sqrt(width // HEADS), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        attended = (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = self.norm(x + self.linear(attended, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        up = self.linear(x, f"{name}.intermediate.dense")
        return self.norm(x + self.linear(up * 0.5 * (1 + erf(up / np.sqrt(2))), f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def embed(self, ids, keep):
        """Unit vectors [B, D] of ids [B, T], where keep [B, T] holds."""
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:ids.shape[1]]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            x = self.layer(x, f"encoder.layer.{layer}", keep)
        mean = (x * keep[:, :, None]).sum(1) / keep.sum(1)[:, None]
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)
