"""Golden outputs of Hugging Face's GPT-2, BERT and Llama, tiny and on closed-form weights.

    pip install torch transformers safetensors
    python golden_transformers.py GOLDEN_DIR                 # CPU, 1 thread, seconds
    python golden_transformers.py GOLDEN_DIR --check FILE    # does leanburn's file load?

Writes gpt2, bert and llama.safetensors (inputs, outputs, loss, gradients of a few parameters under
"grad.NAME") and tiny_gpt2.safetensors (that GPT-2 as save_pretrained writes it). All in float32, in
eval mode, with eager attention; the script also runs in float64 and prints how far float32 lands
from it (Llama's norms and softmax stay in float32 there).

--check loads FILE, a GPT-2 with or without the "transformer." prefix, and prints the largest
difference of its logits from GOLDEN_DIR/gpt2.safetensors, or the mismatches with exit code 1.
"""

import argparse
import math
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

import closed_form

BATCH, LENGTH, PADDING = 2, 17, 5

# The first of each list is the gradient that the padded run of a language model stores as well.
GRADS = {
    "gpt2": [
        "transformer.wte.weight",
        "transformer.wpe.weight",
        "transformer.h.0.ln_1.weight",
        "transformer.h.0.attn.c_attn.weight",
        "transformer.h.1.mlp.c_fc.weight",
        "transformer.h.2.attn.c_proj.bias",
    ],
    "bert": [
        "embeddings.word_embeddings.weight",
        "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight",
        "embeddings.LayerNorm.weight",
        "encoder.layer.0.attention.self.query.weight",
        "encoder.layer.1.intermediate.dense.weight",
    ],
    "llama": [
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.1.mlp.gate_proj.weight",
        "lm_head.weight",
    ],
}


def skeleton(arch):
    if arch == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=67, n_positions=24, n_embd=32, n_layer=3, n_head=4,
            activation_function="gelu_new", layer_norm_epsilon=1e-5,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        kind = transformers.GPT2LMHeadModel
    elif arch == "bert":
        # With a pad_token_id, PyTorch drops the gradient of that row of word_embeddings.
        config = transformers.BertConfig(
            vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, type_vocab_size=2, max_position_embeddings=24,
            hidden_act="gelu", layer_norm_eps=1e-12, pad_token_id=None,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        kind = transformers.BertModel
    else:
        config = transformers.LlamaConfig(
            vocab_size=67, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, intermediate_size=48, rms_norm_eps=1e-5,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            tie_word_embeddings=False, max_position_embeddings=24, pad_token_id=None,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        kind = transformers.LlamaForCausalLM
    model = kind(config).float().eval()
    model.set_attn_implementation("eager")
    return model


def tensor(name, shape):
    """The float32 value of the parameter that Hugging Face calls `name`, in its layout."""
    v = closed_form.c(name, math.prod(shape))
    if name.endswith("bias"):
        v = 0.1 * v
    elif len(shape) == 1:  # norm scale
        v = 1 + 0.1 * v
    elif ".wte." in name or ".wpe." in name:  # GPT-2; the head shares wte, so this sets the logits
        v = 0.5 * v
    elif "embed" in name:  # BERT and Llama; small enough that a wrong norm epsilon shows
        v = 0.1 * v
    else:  # Linear is [out, in]; GPT-2's Conv1D (c_attn, c_proj, c_fc) is [in, out]
        v = v * math.sqrt(3 / shape[0 if ".c_" in name else 1])
    return torch.from_numpy(v.astype("float32").reshape(shape))


def build(arch, dtype):
    model = skeleton(arch)
    with torch.no_grad():  # named_parameters lists GPT-2's tied head once, as wte
        for name, p in model.named_parameters():
            p.copy_(tensor(name, tuple(p.shape)))
    return model.to(dtype)


def inputs(vocab):
    # Row 1 starts in the middle of row 0's tokens, so that some tokens occur twice.
    t = torch.arange(LENGTH)
    ids = torch.stack([(7 * (t + 9 * b) + 3) % vocab for b in range(BATCH)])
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, -PADDING:] = 0
    return ids, mask


def language_model(arch, dtype):
    ids, mask = inputs(67)
    out = {"ids": ids, "mask": mask}
    # First without any mask, then under "padded." with the mask. Padded positions hold ordinary
    # ids, positions count from 0 in both, and the loss skips targets that are padding.
    for prefix, seen in (("", torch.ones_like(mask)), ("padded.", mask)):
        model = build(arch, dtype)
        logits = model(ids, attention_mask=seen if prefix else None, use_cache=False).logits
        targets = ids.masked_fill(seen == 0, -100)[:, 1:]
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten())
        loss.backward()
        out[f"{prefix}logits"] = logits
        out[f"{prefix}loss"] = loss.reshape(1)
        for name in GRADS[arch][:1] if prefix else GRADS[arch]:
            out[f"{prefix}grad.{name}"] = model.get_parameter(name).grad
    return out


def bert(arch, dtype):
    ids, mask = inputs(61)
    types = (torch.arange(LENGTH) >= LENGTH // 2).long().repeat(BATCH, 1)
    model = build(arch, dtype)
    result = model(ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True)
    last, pooled = result.last_hidden_state, result.pooler_output

    def weights(name, like):
        v = closed_form.c(name, like.numel()).reshape(like.shape)
        return torch.from_numpy(v).float().to(dtype)

    pooler_part = (pooled * weights("loss.pooler_output", pooled)).sum()
    last_part = (last * weights("loss.last_hidden_state", last) * mask[:, :, None]).sum()
    loss = (pooler_part + last_part) / BATCH
    loss.backward()
    return {
        "ids": ids,
        "mask": mask,
        "token_type_ids": types,
        # after the embeddings (0) and after the first layer (1); the next is last_hidden_state
        "hidden_states.0": result.hidden_states[0],
        "hidden_states.1": result.hidden_states[1],
        "last_hidden_state": last,
        "pooler_output": pooled,
        "loss": loss.reshape(1),
    } | {f"grad.{name}": model.get_parameter(name).grad for name in GRADS[arch]}


def write(out_dir):
    out_dir.mkdir(parents=True, exist_ok=True)
    for arch, outputs in (("gpt2", language_model), ("bert", bert), ("llama", language_model)):
        golden, exact = outputs(arch, torch.float32), outputs(arch, torch.float64)
        print(f"{arch}: loss {golden['loss'].item():.9f}")
        for name, value in golden.items():
            if value.is_floating_point():
                assert value.isfinite().all(), f"{arch} {name} is not finite"
                top = exact[name].abs().max()
                error = (value.double() - exact[name]).abs().max() / top
                print(f"  {name:50} max abs {top:.6g}, float32 vs float64 {error:.1e} of that")
        golden = {name: value.detach().contiguous() for name, value in golden.items()}
        save_file(golden, out_dir / f"{arch}.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        build("gpt2", torch.float32).save_pretrained(folder)
        saved = pathlib.Path(folder, "model.safetensors").read_bytes()
        (out_dir / "tiny_gpt2.safetensors").write_bytes(saved)


def mismatches(found, expected):
    for name, want in expected.items():
        if name not in found:
            if name != "lm_head.weight":
                yield f"missing: {name}"
        elif found[name].shape != want.shape or found[name].dtype != want.dtype:
            got = found[name]
            yield f"{name}: {got.dtype} {list(got.shape)}, not {want.dtype} {list(want.shape)}"
    for name in found.keys() - expected.keys():
        yield f"unexpected: {name}"
    head, wte = found.get("lm_head.weight"), found.get("transformer.wte.weight")
    if head is not None and wte is not None and not torch.equal(head, wte):
        yield "lm_head.weight differs from transformer.wte.weight"


def check(out_dir, file):
    found = {}
    for name, t in load_file(file).items():
        if name.endswith((".attn.bias", ".attn.masked_bias")):  # causal mask buffers of old files
            continue
        top = name.startswith(("transformer.", "lm_head."))
        found[name if top else f"transformer.{name}"] = t
    model = skeleton("gpt2")
    problems = sorted(mismatches(found, model.state_dict()))
    if problems:
        print("\n".join(problems))
        sys.exit(1)
    model.load_state_dict(found | {"lm_head.weight": found["transformer.wte.weight"]}, strict=True)
    golden = load_file(out_dir / "gpt2.safetensors")
    with torch.no_grad():
        logits = model(golden["ids"], use_cache=False).logits
    print(f"ok: {len(found)} tensors")
    print(f"largest difference of the logits: {(logits - golden['logits']).abs().max():.3e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("golden_dir", type=pathlib.Path)
    parser.add_argument("--check", metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    if args.check:
        check(args.golden_dir, args.check)
    else:
        write(args.golden_dir)


if __name__ == "__main__":
    main()
