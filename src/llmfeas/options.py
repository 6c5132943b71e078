"""The one table of settings: it yields command-line options, sweep fields, `inputs`, JSON Schema and documentation.

A setting has one name wherever it occurs: `micro_batch` in a sweep, in Python and in `inputs`, `--micro-batch` on the
command line. Adding a setting is adding a row. `request.parsed` reads the values that the rows allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .adapters import ADAPTERS as KINDS
from .adapters import VIRTUAL_TOKENS
from .objectives import GUIDED, METHODS, OBJECTIVES
from .optimizers import OPTIMIZERS
from .record import dataclass, field

Kind = Literal["text", "integer", "count", "number", "fraction", "bytes", "duration", "money"]
"""What a value is: `count` is a quantity such as `10B`, `number` has the option's unit, the others are as named."""

Group = Literal[
    "The question", "Workload", "Recipe", "Many devices", "Inference", "Machine and software", "Money and time"
]
"""The headings of `estimate --help`, in this order."""

WRITING = frozenset(each.task for each in OBJECTIVES.values() if each.rollouts)
"""Tasks in which the model writes what it learns from."""
GROUPED = frozenset(each.task for each in OBJECTIVES.values() if each.group > 1)
"""Tasks in which it writes several answers to a prompt."""
TAUGHT = frozenset(each.task for each in OBJECTIVES.values() if each.teacher)
"""Tasks in which it learns from another model."""
TASKS = (
    "pretrain",
    "finetune",
    "lora",
    "qlora",
    "inference",
    *dict.fromkeys(each.task for each in OBJECTIVES.values()),
)
INFERENCE = frozenset({"inference"})
TRAINING = frozenset(TASKS) - INFERENCE
OF_A_JOB = ("tokens", "deadline", "budget")
"""Of a training, and of texts that are read by a model which writes nothing: other inference has no end."""
ADAPTERS = frozenset({"lora", "qlora"}) | GUIDED
FINETUNING = ADAPTERS | {"finetune"}
READING = TRAINING - WRITING
"""Tasks in which the model reads all that it learns from."""
QUANTIZED = frozenset({"qlora", "inference"}) | GUIDED
EVERY_TASK = frozenset(TASKS)

PRECISIONS = ("fp32", "tf32", "bf16-mixed", "fp16-mixed", "bf16", "fp16", "fp8-mixed", "mxfp8-mixed", "nvfp4-mixed")
# fmt: off
QUANTIZATIONS = (
    "none", "int8", "nf4", "nf4-single", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_k_s", "q4_0", "q3_k_m", "q2_k",
    "awq-int4", "gptq-int4", "gptq-int8", "autoround-int4", "w4a16", "w8a8-int8", "mxfp4", "mxfp8", "nvfp4", "fp8",
)
# fmt: on
BLOCK_CACHES = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
"""Formats of a cache in blocks with a scale, as files of weights have them; only some engines hold them."""

ALL_LAYERS = 10**5
"""More layers than any model has: every one of them."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting; numbers are in `unit`, and `minimum` and `maximum` are allowed themselves."""

    name: str
    group: Group
    help: str
    default: str
    """What holds when nothing is said, in words."""
    tasks: frozenset[str] = EVERY_TASK
    """Tasks in which the setting means something."""
    kind: Kind = "integer"
    choices: tuple[str, ...] = ()
    """What a `text` may be; empty: anything."""
    extensible: bool = False
    """Formats that only data/quantization.yaml names are choices too."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Other spellings of a choice."""
    minimum: float = 1
    maximum: float = 10**6
    unit: str = ""
    metavar: str = ""
    short: str = ""
    aliases: tuple[str, ...] = ()
    """Other names of the setting."""
    switches: Mapping[str, str] = field(default_factory=dict)
    """Other names that may stand without a value, and the value that they then mean."""
    required: bool = False
    taken: bool = False
    """The command line means something else by its name: there its first alias stands for it."""
    added: bool = False
    """`inputs` of older versions lack it."""
    nothing: str = ""
    """A word that says no more than saying nothing, beside `auto`."""
    words: Mapping[str, int] = field(default_factory=dict)
    """Words that stand for a number."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name under which the setting may be given, its own first."""
        return tuple(dict.fromkeys((self.name, *self.aliases, *self.switches)))

    @property
    def everyday(self) -> bool:
        """Whether the short help shows it."""
        return self.name in EVERYDAY

    @property
    def flag(self) -> str:
        """The name on the command line, such as `--micro-batch`."""
        return flag_of(self.aliases[0] if self.taken else self.name)

    @property
    def flags(self) -> tuple[str, ...]:
        """Every spelling of it on the command line but its switches."""
        return tuple(flag_of(name) for name in (self.name, *self.aliases)[self.taken :])


def flag_of(name: str) -> str:
    """The command line's spelling of a name: `micro_batch` is `--micro-batch`."""
    return "--" + name.replace("_", "-")


QUESTION: Group = "The question"
WORKLOAD: Group = "Workload"
RECIPE: Group = "Recipe"
LAYOUT: Group = "Many devices"
SERVING: Group = "Inference"
SYSTEM: Group = "Machine and software"
LIMITS: Group = "Money and time"

# fmt: off
OPTIONS: tuple[Option, ...] = (
    Option("model", QUESTION, "Catalog id or alias; a Hugging Face config.json or its folder; a .gguf or .safetensors.",
           "required", kind="text", short="-m", required=True),
    Option("model_context", QUESTION, "Tokens in the longest sequence that the model was made for.",
           "as published under the model's name", maximum=10**8, aliases=("max_position_embeddings",), added=True),
    Option("device", QUESTION, "As people type it: 2x 3090, mac mini m4 16gb, colab, p5.48xlarge; this: this machine.",
           "required", kind="text", short="-d", required=True),
    Option("num_devices", QUESTION, "How many devices.", "1", short="-n", maximum=10**7),
    Option("task", QUESTION, "What to do with the model.",
           "pretrain; estimate begins with all uses", kind="text", short="-t", choices=TASKS,
           synonyms={"train": "pretrain", "pre-train": "pretrain", "pretraining": "pretrain",
                     "pre-training": "pretrain", "sft": "finetune", "full": "finetune", "fine-tune": "finetune",
                     "finetuning": "finetune", "fine-tuning": "finetune", "rm": "reward", "embedding": "embed",
                     "distillation": "distill", "gkd": "distill", "infer": "inference", "chat": "inference",
                     "generate": "inference", "serve": "inference", "serving": "inference",
                     "cross-encoder": "rerank", "reranking": "rerank"}),
    Option("loss", WORKLOAD, "What a task with an objective makes better.",
           "the task's first", GUIDED, kind="text", choices=tuple(OBJECTIVES), added=True),
    Option("reference", WORKLOAD, "The model as it was, where a loss needs it: loaded beside, computed before, none.",
           "loaded; grpo: none", GUIDED, kind="text", choices=("loaded", "precomputed", "none"), added=True),
    Option("adapters", WORKLOAD, "What trains in a task with an objective: all weights or adapters.",
           "none; as --lora-rank or --quant asks for", GUIDED, kind="text", choices=tuple(METHODS), added=True),
    Option("group_size", WORKLOAD, "Answers that the model writes to one prompt.",
           "8", GROUPED, minimum=2, maximum=4096, aliases=("num_generations",), added=True),
    Option("response_length", WORKLOAD, "Tokens of an answer that the model writes; the rest of --seq-len is prompt.",
           "half of --seq-len", WRITING, maximum=10**8, aliases=("max_completion_length",), added=True),
    Option("longest_response", WORKLOAD,
           "Tokens of the longest answer, which ends the writing; --response-length is then their average.",
           "all answers are as long", WRITING, maximum=10**8, added=True),
    Option("rollout_engine", WORKLOAD,
           "Program that writes answers: vllm, or transformers: the model that trains, by its own generate.",
           "vllm", WRITING, kind="text", choices=("vllm", "transformers"), added=True),
    Option("colocate", WORKLOAD, "Answers are written on the devices that train; false: on as many beside them.",
           "true", WRITING, kind="text", choices=("true", "false"), switches={"colocate": "true"}, added=True),
    Option("sleep", WORKLOAD, "A server that writes on the devices that train gives its memory back between.",
           "false; under verl true", WRITING, kind="text", choices=("true", "false"), switches={"sleep": "true"},
           added=True),
    Option("teacher", WORKLOAD, "Model that a student learns from.", "needed", TAUGHT, kind="text", added=True),
    Option("reward_model", WORKLOAD, "Model that judges answers; function: rules do.",
           "function; needed with a critic", GROUPED, kind="text", added=True),
    Option("critic", WORKLOAD, "Model that foresees rewards and trains beside (PPO).",
           "the model itself", GROUPED, kind="text", added=True),
    Option("tokens", WORKLOAD, "Tokens to train on or read, such as 10B.",
           "pretrain: as published, else 20 a parameter; fine-tuning: 10M", TRAINING, kind="count", maximum=1e18),
    Option("examples", WORKLOAD, "Examples to fine-tune on, such as 5k: instead of --tokens.",
           "tokens are counted", FINETUNING, kind="count", maximum=1e15),
    Option("example_tokens", WORKLOAD, "Tokens of an example on average.",
           "all of --seq-len", FINETUNING, maximum=10**8),
    Option("data_size", WORKLOAD, "Text to train on, in bytes such as 40GB: instead of --tokens.",
           "tokens are counted", READING, kind="bytes", unit="bytes", metavar="SIZE", minimum=1, maximum=1e18,
           added=True),
    Option("bytes_per_token", WORKLOAD, "Bytes of text that a token stands for.",
           "of English, by the vocabulary: 3.7 at 32000, 4.6 at 128000", READING, kind="number", minimum=0.1,
           maximum=1000, added=True),
    Option("epochs", WORKLOAD, "Passes over the examples or the text.", "1", TRAINING, kind="number", minimum=0.01,
           maximum=1e5),
    Option("seq_len", WORKLOAD, "Tokens in one sequence.",
           "the model's context, up to 2048; embed, rerank: 512", TRAINING, maximum=10**8),
    Option("micro_batch", WORKLOAD, "Sequences that one device takes at once.",
           "the largest power of two that surely fits, up to 8192 tokens; pretrain: more if faster", TRAINING),
    Option("global_batch", WORKLOAD, "Sequences in one optimizer step, over all devices.",
           "a micro-batch a device; pretrain: at least 2^19 tokens", TRAINING, maximum=10**9),
    Option("precision", RECIPE, "Number format of the computation.",
           "training: bf16-mixed if the device has bf16, else fp16-mixed or fp32; inference: the model's",
           kind="text", choices=PRECISIONS,
           synonyms={"fp8": "fp8-mixed", "mxfp8": "mxfp8-mixed", "nvfp4": "nvfp4-mixed", "float32": "fp32",
                     "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "16-mixed": "fp16-mixed",
                     "32-true": "fp32", "bf16-true": "bf16", "16-true": "fp16"}),
    Option("quant", RECIPE, "Format of the stored weights.",
           "qlora: nf4; inference: as published; at a desk what fits", QUANTIZED, kind="text", choices=QUANTIZATIONS,
           extensible=True),
    Option("optimizer", RECIPE, "Optimizer; adamw is the fused one.",
           "adamw", TRAINING, kind="text", choices=tuple(OPTIMIZERS),
           synonyms={"adam": "adamw", "adamw-torch-fused": "adamw", "adamw-torch": "adamw-foreach",
                     "adamw-bnb-8bit": "adamw-8bit", "adamw8bit": "adamw-8bit",
                     "adam-8bit": "adamw-8bit", "adam8bit": "adamw-8bit", "adamw-torch-8bit": "adamw-8bit",
                     "galore-adamw": "galore", "apollo-adamw": "apollo", "lion-32bit": "lion",
                     "schedule-free-adamw": "adamw-schedule-free"}),
    Option("checkpointing", RECIPE, "Recompute activations instead of keeping them.",
           "full for lora, qlora and maxtext, else none; pretrain on several devices: full if faster", TRAINING,
           kind="text", choices=("none", "selective", "full"),
           synonyms={"true": "full", "on": "full", "yes": "full", "false": "none", "off": "none", "no": "none"},
           switches={"gradient_checkpointing": "full"}),
    Option("attention", RECIPE, "flash: a fused kernel; eager: keeps every score.",
           "what device and model allow", kind="text", choices=("flash", "eager"),
           synonyms={"sdpa": "flash", "fa2": "flash", "fa3": "flash", "flash-attention": "flash",
                     "flash-attention-2": "flash", "flash-attention-3": "flash", "xformers": "flash"}),
    Option("dropout", RECIPE, "Dropout rate.",
           "as the model publishes", TRAINING, kind="fraction", minimum=0, maximum=0.99),
    Option("base_dtype", RECIPE, "Number format that the frozen base of adapters is held in.",
           "16 bits; of fp32 training, and under autocast in litgpt, fp32", ADAPTERS, kind="text",
           choices=("fp32", "bf16", "fp16"), synonyms={"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"},
           added=True),
    Option("lora_rank", RECIPE, "Rank of the adapters.", "16", ADAPTERS, maximum=65536),
    Option("lora_targets", RECIPE, "Matrices that get an adapter.",
           "all-linear", ADAPTERS, kind="text", choices=("all-linear", "attention")),
    Option("lora_kind", RECIPE, "LoRA, with its scale by the root of the rank or magnitudes; IA3; learned tokens.",
           "lora", ADAPTERS, kind="text", choices=tuple(KINDS), aliases=("peft_type",),
           switches={"use_dora": "dora", "use_rslora": "rslora"}, added=True),
    Option("lora_layers", RECIPE, "Last layers that get adapters; all: every one.",
           "all; the last 16 under mlx", ADAPTERS, maximum=ALL_LAYERS, words={"all": ALL_LAYERS}, added=True),
    Option("virtual_tokens", RECIPE, "Tokens that prompt, p-tuning and prefix learn.",
           f"{VIRTUAL_TOKENS}", ADAPTERS, maximum=65536, aliases=("num_virtual_tokens",), added=True),
    Option("lora_dropout", RECIPE, "Dropout rate before the adapters.",
           "0", ADAPTERS, kind="fraction", minimum=0, maximum=0.99),
    Option("zero", LAYOUT, "ZeRO stage: what is divided over the devices.",
           "0 or 3 for PyTorch on several devices, 3 for MaxText, 1 for Megatron", TRAINING, minimum=0, maximum=3,
           switches={"fsdp": "3"}, words={"full_shard": 3, "shard_grad_op": 2, "no_shard": 0}),
    Option("tp", LAYOUT, "Tensor parallel: devices that share each matrix.", "a layout that fits", maximum=4096),
    Option("pp", LAYOUT, "Pipeline stages.", "a layout that fits", maximum=4096),
    Option("interleave", LAYOUT, "Chunks of layers that each pipeline stage holds.",
           "1; as many as fit, up to 8, in tuned engines", TRAINING, maximum=4096),
    Option("ep", LAYOUT, "Expert parallel: devices that share the experts.", "experts over the devices", maximum=65536),
    Option("cp", LAYOUT, "Context parallel: devices that share each sequence.", "1", maximum=4096),
    Option("offload", LAYOUT, "What moves to the host's memory.",
           "none", kind="text", choices=("none", "activations", "optimizer", "all"),
           synonyms={"cpu": "all", "parameters": "all", "weights": "all", "states": "optimizer"}),
    Option("offload_layers", LAYOUT, "Layers of which --offload moves activations, or frozen weights.",
           "all", TRAINING, maximum=10**4, aliases=("cpu_offloading_num_layers",), added=True),
    Option("drive", LAYOUT, "Bandwidth of the drive on which --offload lays states and weights, of one machine.",
           "they lie in main memory", TRAINING, kind="number", unit="GB/s", metavar="GB_PER_S", minimum=1e-3,
           maximum=1e4, added=True),
    Option("context", SERVING, "Tokens that the cache has room for.",
           "the prompt and its answer; without a prompt the model's, up to 4096", INFERENCE, maximum=10**8,
           aliases=("ctx_size", "max_model_len")),
    Option("prompt", SERVING, "Tokens in the prompt, those of its images among them.",
           "0; where requests come, half of --context, up to 256, and the images", INFERENCE, minimum=0, maximum=10**8),
    Option("images", SERVING, "Images in each prompt, at the size that a note names.",
           "0", INFERENCE, minimum=0, maximum=10**4, added=True),
    Option("output", SERVING, "Tokens in the answer, on average.",
           "what --context leaves beside a prompt; without either up to 512", INFERENCE, maximum=10**8,
           aliases=("output_tokens",), taken=True),
    Option("concurrency", SERVING, "Requests served at the same time.", "1", INFERENCE),
    Option("rate", SERVING, "Requests that come each second, at random; --concurrency then limits them.",
           "none", INFERENCE, kind="number", unit="requests/s", metavar="PER_SECOND", minimum=1e-6, maximum=1e6,
           aliases=("request_rate",), nothing="inf"),
    Option("requests", SERVING, "How many requests a load has; without a rate they begin at once, as a benchmark does.",
           "without end", INFERENCE, maximum=10**5, aliases=("num_prompts",)),
    Option("length_spread", SERVING, "Standard deviation of prompts' and answers' lengths over their means; chats: 1.",
           "0: all are alike; in rounds of --requests 0.5", INFERENCE, kind="number", minimum=0, maximum=10),
    Option("prefix_hit", SERVING, "Share of each prompt that is found in the cache.",
           "0", INFERENCE, kind="fraction", minimum=0, maximum=1),
    Option("cache_held", SERVING, "Of a server's cache, what each request holds: its whole context, or what it wrote.",
           "written; whole where --context is more than prompt and answer", INFERENCE, kind="text",
           choices=("whole", "written"), added=True),
    Option("disaggregate", SERVING, "Prompts and answers on devices of their own, such as 2:6.",
           "the same devices do both", INFERENCE, kind="text", metavar="PROMPTS:ANSWERS"),
    Option("draft", SERVING, "What drafts tokens ahead: a model; mtp, the model's own; eagle, a layer trained for it.",
           "nothing", INFERENCE, kind="text"),
    Option("spec_tokens", SERVING, "Tokens that are drafted ahead in each step.",
           "3 with a draft", INFERENCE, maximum=64),
    Option("acceptance", SERVING, "Share of drafted tokens that the model would have written itself.",
           "0.7 with a draft: it depends on the text", INFERENCE, kind="fraction", minimum=0, maximum=1),
    Option("ttft", SERVING, "Longest wait for the first token that 95 % of requests may have, such as 500ms.",
           "no target", INFERENCE, kind="duration", unit="seconds", metavar="TIME", minimum=1e-6, maximum=1e6),
    Option("tpot", SERVING, "Longest time per token after the first that 95 % of requests may have, such as 50ms.",
           "no target", INFERENCE, kind="duration", unit="seconds", metavar="TIME", minimum=1e-6, maximum=1e6),
    Option("kv_dtype", SERVING, "Number format of the cache.",
           "16 bits", INFERENCE, kind="text", choices=("fp16", "bf16", "fp8", "int8", *BLOCK_CACHES),
           synonyms={"f16": "fp16", "float16": "fp16", "bfloat16": "bf16", "fp8-e4m3": "fp8", "fp8-e5m2": "fp8"}),
    Option("n_cpu_moe", SERVING, "llama.cpp: as many layers keep their experts in main memory; --cpu-moe: all.",
           "none; as many as do not fit", INFERENCE, minimum=0, maximum=ALL_LAYERS, aliases=("num_cpu_moe",),
           switches={"cpu_moe": str(ALL_LAYERS)}, added=True),
    Option("gpu_layers", SERVING, "llama.cpp: layers on the device, the rest on the host.",
           "all; with 4 bits or fewer all that fit", INFERENCE, minimum=0, maximum=ALL_LAYERS),
    Option("ubatch", SERVING, "llama.cpp: tokens of prompts that pass through the layers at once.",
           "512", INFERENCE, maximum=65536, aliases=("ubatch_size",), added=True),
    Option("gpu_memory_utilization", SERVING, "Share of a device that a server takes for weights, passes and cache.",
           "the server's own: vllm 0.92; beside a training 0.3", INFERENCE | WRITING, kind="fraction", minimum=0.01,
           maximum=1, aliases=("mem_fraction_static", "free_gpu_memory_fraction")),
    Option("max_num_seqs", SERVING, "Requests that a server runs at the same time at most.",
           "the server's own, by device", INFERENCE, aliases=("max_running_requests",)),
    Option("max_num_batched_tokens", SERVING, "Tokens that a server takes in one pass.",
           "the server's own, by device", INFERENCE, maximum=10**7, aliases=("chunked_prefill_size",)),
    Option("enforce_eager", SERVING, "A server captures no graphs.",
           "it captures them", INFERENCE, kind="text", choices=("false", "true"), switches={"enforce_eager": "true"}),
    Option("engine", SYSTEM, "Software that runs it: pytorch, unsloth, megatron, llama.cpp, vllm, mlx ...",
           "what people use on that backend", kind="text"),
    Option("engine_version", SYSTEM, "Release of that software, such as 0.19.0, or its month: 2025-03.",
           "today's", INFERENCE, kind="text"),
    Option("transformers", SYSTEM, "Release of transformers: 4 loops over experts, 5 stacks them; until 4.48 "
           "the loss copies the logits.", "5; 4 where it alone has the experts in the format", kind="text",
           choices=("4", "4.48", "5"), added=True),
    Option("memory", SYSTEM, "What one device really has, such as 16GiB.",
           "the device's own; the smallest common size of a Mac", kind="bytes", unit="bytes", metavar="SIZE",
           minimum=2**20, maximum=2**50),
    Option("reserve", SYSTEM, "What a screen and other programs hold of each device's memory.",
           "600MiB of one or two cards at a desk; elsewhere 0", kind="bytes", unit="bytes", metavar="SIZE",
           minimum=0, maximum=2**50, added=True),
    Option("wired_limit", SYSTEM, "What macOS lets the GPU of a Mac have: iogpu.wired_limit_mb.",
           "macOS 26: 74 % of 16GiB, 3 % more with each doubling", kind="bytes", unit="bytes", metavar="SIZE",
           minimum=2**20, maximum=2**50, added=True),
    Option("host_memory", SYSTEM, "Main memory of one machine.",
           "32GiB, or as much as its cards; a server 256GiB, or twice its cards", kind="bytes", unit="bytes",
           metavar="SIZE", minimum=2**20, maximum=2**50),
    Option("host_bandwidth", SYSTEM, "Bandwidth of main memory: channels x 8 bytes x rate; two of DDR5-6000: 96.",
           "by the size of the main memory", kind="number", unit="GB/s", metavar="GB_PER_S", minimum=1, maximum=1e5,
           added=True),
    Option("power_limit", SYSTEM, "Power that each device is limited to, as nvidia-smi -pl does; slows it down.",
           "its board's", kind="number", unit="W", metavar="WATTS", minimum=1, maximum=1e5, added=True),
    Option("devices_per_node", SYSTEM, "Devices in one machine.", "the catalog's", maximum=65536),
    Option("network", SYSTEM, "Network of one device to other machines.",
           "the catalog's", kind="number", unit="GB/s", metavar="GB_PER_S", minimum=1e-3, maximum=1e5),
    Option("mtbf", SYSTEM, "Mean time between failures of one device, such as 50000h.",
           "50700h on several machines (Llama 3), else not counted", TRAINING, kind="duration", unit="seconds",
           metavar="TIME", minimum=3600, maximum=3.2e12, added=True),
    Option("storage", SYSTEM, "Bandwidth to what checkpoints are written to and tokens read from, of the job.",
           "1 GB/s a machine", TRAINING, kind="number", unit="GB/s", metavar="GB_PER_S", minimum=1e-3, maximum=1e7,
           added=True),
    Option("loader", SYSTEM, "Tokens a second that the data loaders of the whole job bring.",
           "they keep up", READING, kind="count", metavar="TOKENS_PER_S", minimum=1e-3, maximum=1e15, added=True),
    Option("mfu", SYSTEM, "Share of the dense peak that is reached; replaces the whole time model.",
           "calibrated", TRAINING, kind="fraction", minimum=1e-4, maximum=1),
    Option("price", LIMITS, "Rent of one device.",
           "the cheapest dated on-demand price of the catalog", kind="money", unit="USD/h", metavar="USD_PER_HOUR",
           minimum=0, maximum=1e6),
    Option("purchase_price", LIMITS, "Price of one device, bought: its wear is counted instead of the rent.",
           "rented", kind="money", unit="USD", metavar="USD", minimum=0.01, maximum=1e9),
    Option("lifetime", LIMITS, "How long a bought device is used, such as 3y.",
           "3 years", kind="duration", unit="seconds", metavar="TIME", minimum=3600, maximum=3.2e9),
    Option("electricity", LIMITS, "Price of electricity.",
           "not counted", kind="money", unit="USD/kWh", metavar="USD_PER_KWH", minimum=0, maximum=1e3),
    Option("pue", LIMITS, "Energy of the building per energy of its machines.", "1", kind="number", maximum=10),
    Option("region", LIMITS, "Where it runs: a country such as DE or Sweden, or world; its CO2 is then counted.",
           "not counted", kind="text", metavar="COUNTRY", added=True),
    Option("deadline", LIMITS, "Longest time allowed, such as 30d.",
           "none", TRAINING, kind="duration", unit="seconds", metavar="TIME", maximum=3.2e13),
    Option("budget", LIMITS, "Most money allowed.",
           "none", TRAINING, kind="money", unit="USD", metavar="USD", minimum=0.01, maximum=1e15),
)
# fmt: on

EVERYDAY = frozenset(
    (
        *("model", "device", "num_devices", "task", "tokens", "examples", "epochs", "seq_len", "micro_batch", "quant"),
        *("checkpointing", "context", "prompt", "concurrency", "engine", "memory", "price", "deadline"),
    )
)
"""Settings that the short help shows."""

BY_NAME: Mapping[str, Option] = {name: option for option in OPTIONS for name in option.names}
"""Each setting under every name that it may be given by."""
