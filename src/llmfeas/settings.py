"""The settings of a question as type checkers and editors know them; only they read this file.

tests/test_python_page.py writes it from the table of settings (`options`) with UPDATE_GOLDEN=1.
"""

from __future__ import annotations

from typing import Literal, TypedDict

# fmt: off
Question = Literal[
    "max-model", "max-batch", "max-users", "max-rate", "max-context", "max-rank", "min-devices", "min-memory", "tokens",
    "deadline", "optimal", "cheapest"
]
"""What `solve` answers."""
Setting = Literal[
    "model", "model_context", "device", "num_devices", "task", "loss", "reference", "adapters", "group_size",
    "response_length", "longest_response", "rollout_engine", "colocate", "sleep", "teacher", "reward_model", "critic",
    "tokens", "examples", "example_tokens", "data_size", "bytes_per_token", "epochs", "seq_len", "micro_batch",
    "global_batch", "precision", "quant", "optimizer", "checkpointing", "attention", "dropout", "base_dtype",
    "lora_rank", "lora_targets", "lora_kind", "lora_layers", "virtual_tokens", "lora_dropout", "zero", "tp", "pp",
    "interleave", "ep", "cp", "offload", "offload_layers", "drive", "context", "prompt", "images", "output",
    "concurrency", "rate", "requests", "length_spread", "prefix_hit", "cache_held", "disaggregate", "draft",
    "spec_tokens", "acceptance", "ttft", "tpot", "kv_dtype", "n_cpu_moe", "gpu_layers", "ubatch",
    "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "enforce_eager", "engine", "engine_version",
    "transformers", "memory", "reserve", "wired_limit", "host_memory", "host_bandwidth", "power_limit",
    "devices_per_node", "network", "mtbf", "storage", "loader", "mfu", "price", "purchase_price", "lifetime",
    "electricity", "pue", "region", "deadline", "budget"
]
"""Names of settings."""


class Settings(TypedDict, total=False):
    """What a question may say beside model and device; what it leaves out is decided."""

    model_context: int | str
    """Tokens in the longest sequence that the model was made for."""
    num_devices: int | str
    """How many devices."""
    task: Literal[
        "pretrain", "finetune", "lora", "qlora", "inference", "dpo", "grpo", "distill", "reward", "embed", "rerank",
        "train", "pre-train", "pretraining", "pre-training", "sft", "full", "fine-tune", "finetuning", "fine-tuning",
        "rm", "embedding", "distillation", "gkd", "infer", "chat", "generate", "serve", "serving", "cross-encoder",
        "reranking", "auto"
    ]
    """What to do with the model."""
    loss: Literal[
        "dpo", "ipo", "kto", "orpo", "simpo", "grpo", "rloo", "ppo", "reverse-kl", "forward-kl", "bradley-terry",
        "in-batch", "in-batch-hard", "in-batch-cached", "pair-score", "auto"
    ]
    """What a task with an objective makes better."""
    reference: Literal["loaded", "precomputed", "none", "auto"]
    """The model as it was, where a loss needs it: loaded beside, computed before, none."""
    adapters: Literal["none", "lora", "qlora", "auto"]
    """What trains in a task with an objective: all weights or adapters."""
    group_size: int | str
    """Answers that the model writes to one prompt."""
    response_length: int | str
    """Tokens of an answer that the model writes; the rest of --seq-len is prompt."""
    longest_response: int | str
    """Tokens of the longest answer, which ends the writing; --response-length is then their average."""
    rollout_engine: Literal["vllm", "transformers", "auto"]
    """Program that writes answers: vllm, or transformers: the model that trains, by its own generate."""
    colocate: bool | Literal["true", "false", "auto"]
    """Answers are written on the devices that train; false: on as many beside them."""
    sleep: bool | Literal["true", "false", "auto"]
    """A server that writes on the devices that train gives its memory back between."""
    teacher: str
    """Model that a student learns from."""
    reward_model: str
    """Model that judges answers; function: rules do."""
    critic: str
    """Model that foresees rewards and trains beside (PPO)."""
    tokens: float | str
    """Tokens to train on or read, such as 10B."""
    examples: float | str
    """Examples to fine-tune on, such as 5k: instead of --tokens."""
    example_tokens: int | str
    """Tokens of an example on average."""
    data_size: float | str
    """Text to train on, in bytes such as 40GB: instead of --tokens."""
    bytes_per_token: float | str
    """Bytes of text that a token stands for."""
    epochs: float | str
    """Passes over the examples or the text."""
    seq_len: int | str
    """Tokens in one sequence."""
    micro_batch: int | str
    """Sequences that one device takes at once."""
    global_batch: int | str
    """Sequences in one optimizer step, over all devices."""
    precision: Literal[
        "fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16", "fp16", "fp8-mixed", "mxfp8-mixed", "nvfp4-mixed", "fp8",
        "mxfp8", "nvfp4", "float32", "bfloat16", "float16", "half", "16-mixed", "32-true", "bf16-true", "16-true",
        "auto"
    ]
    """Number format of the computation."""
    quant: str
    """Format of the stored weights."""
    optimizer: Literal[
        "adamw", "adamw-foreach", "adamw-bf16", "adamw-8bit", "adafactor", "sgd", "sgd-momentum", "lion",
        "adamw-schedule-free", "adam-mini", "galore", "apollo", "soap", "shampoo", "muon", "adam", "adamw-torch-fused",
        "adamw-torch", "adamw-bnb-8bit", "adamw8bit", "adam-8bit", "adam8bit", "adamw-torch-8bit", "galore-adamw",
        "apollo-adamw", "lion-32bit", "schedule-free-adamw", "auto"
    ]
    """Optimizer; adamw is the fused one."""
    checkpointing: Literal["none", "selective", "full", "true", "on", "yes", "false", "off", "no", "auto"]
    """Recompute activations instead of keeping them."""
    attention: Literal[
        "flash", "eager", "sdpa", "fa2", "fa3", "flash-attention", "flash-attention-2", "flash-attention-3", "xformers",
        "auto"
    ]
    """flash: a fused kernel; eager: keeps every score."""
    dropout: float | str
    """Dropout rate."""
    base_dtype: Literal["fp32", "bf16", "fp16", "float32", "bfloat16", "float16", "auto"]
    """Number format that the frozen base of adapters is held in."""
    lora_rank: int | str
    """Rank of the adapters."""
    lora_targets: Literal["all-linear", "attention", "auto"]
    """Matrices that get an adapter."""
    lora_kind: Literal["lora", "rslora", "dora", "ia3", "prompt", "p-tuning", "prefix", "auto"]
    """LoRA, with its scale by the root of the rank or magnitudes; IA3; learned tokens."""
    lora_layers: int | str
    """Last layers that get adapters; all: every one."""
    virtual_tokens: int | str
    """Tokens that prompt, p-tuning and prefix learn."""
    lora_dropout: float | str
    """Dropout rate before the adapters."""
    zero: int | str
    """ZeRO stage: what is divided over the devices."""
    tp: int | str
    """Tensor parallel: devices that share each matrix."""
    pp: int | str
    """Pipeline stages."""
    interleave: int | str
    """Chunks of layers that each pipeline stage holds."""
    ep: int | str
    """Expert parallel: devices that share the experts."""
    cp: int | str
    """Context parallel: devices that share each sequence."""
    offload: Literal["none", "activations", "optimizer", "all", "cpu", "parameters", "weights", "states", "auto"]
    """What moves to the host's memory."""
    offload_layers: int | str
    """Layers of which --offload moves activations, or frozen weights."""
    drive: float | str
    """Bandwidth of the drive on which --offload lays states and weights, of one machine."""
    context: int | str
    """Tokens that the cache has room for."""
    prompt: int | str
    """Tokens in the prompt, those of its images among them."""
    images: int | str
    """Images in each prompt, at the size that a note names."""
    output: int | str
    """Tokens in the answer, on average."""
    concurrency: int | str
    """Requests served at the same time."""
    rate: float | str
    """Requests that come each second, at random; --concurrency then limits them."""
    requests: int | str
    """How many requests a load has; without a rate they begin at once, as a benchmark does."""
    length_spread: float | str
    """Standard deviation of prompts' and answers' lengths over their means; chats: 1."""
    prefix_hit: float | str
    """Share of each prompt that is found in the cache."""
    cache_held: Literal["whole", "written", "auto"]
    """Of a server's cache, what each request holds: its whole context, or what it wrote."""
    disaggregate: str
    """Prompts and answers on devices of their own, such as 2:6."""
    draft: str
    """What drafts tokens ahead: a model; mtp, the model's own; eagle, a layer trained for it."""
    spec_tokens: int | str
    """Tokens that are drafted ahead in each step."""
    acceptance: float | str
    """Share of drafted tokens that the model would have written itself."""
    ttft: float | str
    """Longest wait for the first token that 95 % of requests may have, such as 500ms."""
    tpot: float | str
    """Longest time per token after the first that 95 % of requests may have, such as 50ms."""
    kv_dtype: Literal[
        "fp16", "bf16", "fp8", "int8", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "f16", "float16", "bfloat16",
        "fp8-e4m3", "fp8-e5m2", "auto"
    ]
    """Number format of the cache."""
    n_cpu_moe: int | str
    """llama.cpp: as many layers keep their experts in main memory; --cpu-moe: all."""
    gpu_layers: int | str
    """llama.cpp: layers on the device, the rest on the host."""
    ubatch: int | str
    """llama.cpp: tokens of prompts that pass through the layers at once."""
    gpu_memory_utilization: float | str
    """Share of a device that a server takes for weights, passes and cache."""
    max_num_seqs: int | str
    """Requests that a server runs at the same time at most."""
    max_num_batched_tokens: int | str
    """Tokens that a server takes in one pass."""
    enforce_eager: bool | Literal["false", "true", "auto"]
    """A server captures no graphs."""
    engine: str
    """Software that runs it: pytorch, unsloth, megatron, llama.cpp, vllm, mlx ..."""
    engine_version: str
    """Release of that software, such as 0.19.0, or its month: 2025-03."""
    transformers: Literal["4", "4.48", "5", "auto"]
    """Release of transformers: 4 loops over experts, 5 stacks them; until 4.48 the loss copies the logits."""
    memory: float | str
    """What one device really has, such as 16GiB."""
    reserve: float | str
    """What a screen and other programs hold of each device's memory."""
    wired_limit: float | str
    """What macOS lets the GPU of a Mac have: iogpu.wired_limit_mb."""
    host_memory: float | str
    """Main memory of one machine."""
    host_bandwidth: float | str
    """Bandwidth of main memory: channels x 8 bytes x rate; two of DDR5-6000: 96."""
    power_limit: float | str
    """Power that each device is limited to, as nvidia-smi -pl does; slows it down."""
    devices_per_node: int | str
    """Devices in one machine."""
    network: float | str
    """Network of one device to other machines."""
    mtbf: float | str
    """Mean time between failures of one device, such as 50000h."""
    storage: float | str
    """Bandwidth to what checkpoints are written to and tokens read from, of the job."""
    loader: float | str
    """Tokens a second that the data loaders of the whole job bring."""
    mfu: float | str
    """Share of the dense peak that is reached; replaces the whole time model."""
    price: float | str
    """Rent of one device."""
    purchase_price: float | str
    """Price of one device, bought: its wear is counted instead of the rent."""
    lifetime: float | str
    """How long a bought device is used, such as 3y."""
    electricity: float | str
    """Price of electricity."""
    pue: float | str
    """Energy of the building per energy of its machines."""
    region: str
    """Where it runs: a country such as DE or Sweden, or world; its CO2 is then counted."""
    deadline: float | str
    """Longest time allowed, such as 30d."""
    budget: float | str
    """Most money allowed."""
