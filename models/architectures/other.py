"""Speech, video, recommendation, sequences and graphs."""

import torch


class _Speech(torch.nn.Module):
    """A spectrogram through convolutions and LSTMs of both directions to letters, as DeepSpeech 2 does it."""

    def __init__(self, bands=80, width=256, letters=29):
        super().__init__()
        self.convolutions = torch.nn.Sequential(
            torch.nn.Conv2d(1, 32, (11, 5), (2, 2), (5, 2)), torch.nn.BatchNorm2d(32), torch.nn.Hardtanh(0, 20),
            torch.nn.Conv2d(32, 32, (11, 5), (2, 1), (5, 2)), torch.nn.BatchNorm2d(32), torch.nn.Hardtanh(0, 20))
        self.cells = torch.nn.LSTM(32 * bands // 4, width, 3, bidirectional=True)
        self.out = torch.nn.Linear(2 * width, letters)

    def forward(self, spectrogram):
        x = self.convolutions(spectrogram[:, None]).flatten(1, 2).permute(2, 0, 1)
        return self.out(self.cells(x)[0]).log_softmax(2)


def _deepspeech():
    return _Speech(), (torch.rand(2, 80, 60),), {"spectrogram": {0: "batch", 2: "frames"}}, ["letters"]


class _Recommender(torch.nn.Module):
    """Dense features and one category a table; products of all pairs; a last network, as DLRM does it."""

    def __init__(self, tables=8, rows=1000, width=32):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = torch.nn.Sequential(torch.nn.Linear(13, 64), torch.nn.ReLU(), torch.nn.Linear(64, width), torch.nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = torch.nn.Sequential(torch.nn.Linear(width + pairs, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1), torch.nn.Sigmoid())
        self.register_buffer("rows", torch.tril_indices(tables + 1, tables + 1, -1)[0])
        self.register_buffer("columns", torch.tril_indices(tables + 1, tables + 1, -1)[1])

    def forward(self, dense, categories):
        x = self.bottom(dense)
        vectors = torch.stack([x] + [table(categories[:, i]) for i, table in enumerate(self.tables)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return self.top(torch.cat([x, products[:, self.rows, self.columns]], 1))


def _dlrm():
    inputs = (torch.rand(4, 13), torch.arange(4 * 8).reshape(4, 8) * 37 % 1000)
    return _Recommender(), inputs, {"dense": {0: "batch"}, "categories": {0: "batch"}}, ["click"]


class _Whisper(torch.nn.Module):
    """A spectrogram of 30 seconds and the tokens so far to the next token's logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, spectrogram, tokens):
        return self.model(input_features=spectrogram, decoder_input_ids=tokens, use_cache=False).logits


def _whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sizes = {"d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6, "decoder_attention_heads": 6,
             "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536}
    tokens = torch.arange(2 * 8).reshape(2, 8) * 37 % 50000
    axes = {"spectrogram": {0: "batch"}, "tokens": {0: "batch", 1: "length"}}
    return _Whisper(WhisperForConditionalGeneration(WhisperConfig(**sizes))), (torch.rand(2, 80, 3000), tokens), axes, ["logits"]


def _video():
    import torchvision

    return torchvision.models.video.r3d_18(weights=None), (torch.rand(2, 3, 16, 112, 112),), {"x": {0: "batch"}}, ["logits"]


class _MatrixMemory(torch.nn.Module):
    """A layer of xLSTM's matrix memory, all steps at once: products of queries and keys, weighed by what the gates between them let through."""

    def __init__(self, width=256, heads=4):
        super().__init__()
        self.heads = heads
        self.rows = torch.nn.Linear(width, 3 * width)
        self.gates = torch.nn.Linear(width, 2 * heads)
        self.norm = torch.nn.LayerNorm(width // heads)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        queries, keys, values = self.rows(x).view(batch, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        enters, stays = self.gates(x).transpose(1, 2).chunk(2, 1)
        kept = torch.nn.functional.logsigmoid(stays).cumsum(-1)
        decay = kept[..., :, None] - kept[..., None, :] + enters[..., None, :]
        decay = decay.masked_fill(torch.ones(steps, steps, dtype=torch.bool).triu(1), float("-inf"))
        most = decay.amax(-1, keepdim=True)
        weights = queries @ keys.transpose(-1, -2) / (width // self.heads) ** 0.5 * (decay - most).exp()
        read = weights @ values / torch.maximum(weights.sum(-1, keepdim=True).abs(), (-most).exp())
        return self.out(self.norm(read).transpose(1, 2).reshape(batch, steps, width))


def _mlstm():
    return _MatrixMemory(), (torch.randn(2, 128, 256),), {"x": {0: "batch"}}, ["y"]


class _GraphAttention(torch.nn.Module):
    """Two layers of a graph attention network: a softmax over each vertex's edges, by scatters."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(2))
        self.scores = torch.nn.ModuleList(torch.nn.Linear(width // heads, 2) for _ in range(2))

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        count = x.shape[0]
        for layer, scores in zip(self.layers, self.scores):
            rows = layer(x).view(count, self.heads, -1)
            given = scores(rows)
            score = torch.nn.functional.leaky_relu(given[..., 0][source] + given[..., 1][target], 0.2)
            most = torch.full((count, self.heads), -1e30).scatter_reduce(0, target[:, None].expand(-1, self.heads), score, "amax")
            weight = (score - most[target]).exp()
            total = torch.zeros(count, self.heads).index_add(0, target, weight)
            read = torch.zeros(count, self.heads, rows.shape[2]).index_add(0, target, rows[source] * (weight / total[target])[..., None])
            x = torch.nn.functional.elu(read.flatten(1))
        return x


def _gat():
    edges = torch.arange(2 * 3000).reshape(2, 3000) * 37 % 500
    return _GraphAttention(), (torch.randn(500, 64), edges), {"x": {0: "vertices"}, "edges": {1: "edges"}}, ["y"]


MODELS = {"deepspeech": _deepspeech, "whisper_tiny": _whisper, "r3d_18": _video, "dlrm": _dlrm, "mlstm": _mlstm, "gat": _gat}
