"""Language models: encoders, decoders with and without a cache of keys and values, a mixture of experts, state spaces, an LSTM."""

import torch

TOKENS = {0: "batch", 1: "seq"}


def _ids(batch, length, below):
    return torch.arange(batch * length).reshape(batch, length) * 37 % below


class _Encoder(torch.nn.Module):
    """Token ids and a mask to hidden states, as sentence embedders use it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def encoder(kind, pooling=True, **sizes):
    def make():
        import transformers

        arguments = {"add_pooling_layer": False} if pooling else {}
        model = _Encoder(getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**sizes), **arguments))
        ids = _ids(2, 16, 30000)
        return model, (ids, torch.ones_like(ids)), {"input_ids": TOKENS, "attention_mask": TOKENS}, ["hidden"]

    return make


class _Decoder(torch.nn.Module):
    """Token ids, and the keys and values of earlier tokens if there are any, to logits and all keys and values."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, *past):
        from transformers import DynamicCache

        cache = DynamicCache([(past[i], past[i + 1]) for i in range(0, len(past), 2)]) if past else None
        out = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        return (out.logits, *(tensor for layer in out.past_key_values.layers for tensor in (layer.keys, layer.values)))


def _decoder(model, layers, heads, width, past, below, tokens):
    """`past` is how many earlier tokens the example has: 0 for the model that reads a prompt."""
    names = [f"{kind}{layer}" for layer in range(layers) for kind in ("key", "value")]
    ids = _ids(2, 1 if past else 16, below)
    if not past:
        return _Decoder(model), (ids,), {"input_ids": tokens}, ["logits", *names]
    cache = tuple(torch.rand(2, heads, past, width) for _ in names)
    axes = {"input_ids": {0: "batch"}} | {f"past_{name}": {0: "batch", 2: "past"} for name in names}
    return _Decoder(model), (ids, *cache), axes, ["logits", *names]


def gpt2(past=0, tokens=None):
    def make():
        import transformers

        config = transformers.GPT2Config()
        model = transformers.GPT2LMHeadModel(config)
        return _decoder(model, config.n_layer, config.n_head, config.n_embd // config.n_head, past, 50000, tokens or TOKENS)

    return make


LLAMA = {"vocab_size": 8192, "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8,
         "num_hidden_layers": 4, "head_dim": 64, "max_position_embeddings": 2048, "tie_word_embeddings": True}
MIXTRAL = {"vocab_size": 4096, "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
           "num_hidden_layers": 2, "head_dim": 32, "max_position_embeddings": 512}


def causal(kind, sizes, past=0):
    def make():
        import transformers

        model = getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**sizes))
        if kind == "Mixtral":
            model.set_experts_implementation("batched_mm")  # the others are operators without a counterpart in ONNX
        return _decoder(model, sizes["num_hidden_layers"], sizes["num_key_value_heads"], sizes["head_dim"], past, 4000, TOKENS)

    return make


class _Words(torch.nn.Module):
    """A word model of two LSTM layers with their states as inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(5000, 256)
        self.cells = torch.nn.LSTM(256, 256, 2)
        self.out = torch.nn.Linear(256, 5000)

    def forward(self, tokens, hidden, cell):
        out, (hidden, cell) = self.cells(self.embed(tokens), (hidden, cell))
        return self.out(out), hidden, cell


def _lstm_lm():
    axes = {"tokens": {0: "seq", 1: "batch"}, "hidden": {1: "batch"}, "cell": {1: "batch"}}
    return _Words(), (_ids(12, 2, 5000), torch.rand(2, 2, 256), torch.rand(2, 2, 256)), axes, ["logits", "hidden_out", "cell_out"]


# DeBERTa v3 small; its vocabulary is that of others here, since a table of 128,100 rows is looked up alike.
DEBERTA = {"hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 3072,
           "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 256, "share_att_key": True,
           "norm_rel_ebd": "layer_norm", "max_relative_positions": -1, "position_biased_input": False, "type_vocab_size": 0, "vocab_size": 30522}


class _Hidden(torch.nn.Module):
    """Token ids to hidden states."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).last_hidden_state


def _mamba():
    from transformers import MambaConfig, MambaModel

    model = MambaModel(MambaConfig(hidden_size=512, num_hidden_layers=2, vocab_size=8000))
    return _Hidden(model), (_ids(2, 32, 8000),), {"input_ids": {0: "batch"}}, ["hidden"]


MODELS = {
    "bert_base": encoder("Bert"),
    "minilm_l6": encoder("Bert", hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
    "roberta_base": encoder("Roberta"),
    "deberta_v3_small": encoder("DebertaV2", pooling=False, **DEBERTA),
    "distilbert": encoder("DistilBert", pooling=False),
    "gpt2": gpt2(tokens={0: "batch"}),
    "gpt2_prefill": gpt2(),
    "gpt2_decode": gpt2(past=20),
    "llama_prefill": causal("Llama", LLAMA),
    "llama_decode": causal("Llama", LLAMA, past=20),
    "mixtral_tiny": causal("Mixtral", MIXTRAL),
    "mamba_tiny": _mamba,
    "lstm_lm": _lstm_lm,
}
