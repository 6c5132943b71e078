"""What other tools call our settings: an option of theirs that takes the same value is taken for ours, else its meaning
is told.

Adding a name is adding a word to a row. Names are those of transformers, TRL, Axolotl, torchrun, DeepSpeed, Megatron,
vLLM, SGLang, llama.cpp, Ollama and of calculators on the web; our own aliases (`--ctx-size`) need no row.
"""

from __future__ import annotations

from collections.abc import Mapping

from .objectives import OBJECTIVES
from .options import BY_NAME
from .record import dataclass


@dataclass(frozen=True, slots=True)
class Ours:
    """What says the same here: flags, as they are typed, and one line for people."""

    flags: tuple[str, ...]
    text: str
    same: bool = False
    """Whether the one flag takes what theirs takes."""


def _other(flag: str) -> Ours:
    """A flag whose value is another one, or that has none elsewhere."""
    return Ours((flag,), flag)


OWN_ATTENTION = Ours(
    ("--ep", "--tp"), "--tp 1 --ep with the number of devices: each attends alone, all share the experts"
)
BATCH = Ours(("--micro-batch", "--concurrency"), "--micro-batch in training, --concurrency in inference")
ACCUMULATED = Ours(("--global-batch",), "--global-batch, the sequences of a whole step over all devices")
COPIES = Ours(("--tp", "--pp"), "--tp and --pp, of one copy of the model: the other devices are further copies")
UNLIKE = Ours(
    ("--device",), "--device rtx-4090+rtx-3060-12gb, where cards differ: layers are dealt out by their memory"
)
CHUNKS = Ours(("--interleave",), "--interleave, the chunks of layers that each stage holds")
ZERO = Ours(("--zero", "--engine"), "--zero 1 to 3, with --engine deepspeed where that divides")
DIVIDED = Ours(("--tp",), "--tp: Megatron's ranks divide the stream too")
SHARDED = Ours(("--zero",), "--zero 1, which Megatron has by itself")
LIGER = Ours(("--engine",), "--engine pytorch-liger")
COMPILED = Ours(("--engine",), "--engine pytorch-compile")
NARROW = Ours(("--precision",), "--precision fp8-mixed")
HALVES = Ours(
    ("--precision",),
    "--precision: bf16-mixed or fp16-mixed, as Trainer's --bf16 and --fp16 are; bf16 is all in 16 bits",
)
DRAFTED = Ours(("--draft", "--spec-tokens"), "--draft, with --spec-tokens and --acceptance")
DAYS = Ours(("--deadline",), "--deadline, with its unit: 30d")
DEVICES = Ours(("--num-devices",), "--num-devices, or the number before the device: -d 8xh100-sxm")
LOADED = Ours(("--quant",), "--task qlora to train adapters, --quant nf4 in inference")
EIGHT = Ours(("--quant",), "--quant int8")
STEPS = Ours(("--tokens",), "--tokens: steps x --global-batch x --seq-len")
MOMENTS = Ours(("--optimizer",), "--optimizer adamw-bf16: both moments in 16 bits")
LAST_LAYERS = Ours(("--lora-layers",), "--lora-layers, the number of last layers that get adapters")
DATA = Ours(("--data-size", "--examples"), "--data-size, the bytes of a text; --examples counts examples")
LOADED_DATA = Ours(("--loader",), "--loader, the tokens a second that all loaders bring")
HOST_CACHE = Ours(
    ("--prefix-hit",),
    "--prefix-hit, the share of prompts that caches hold, those on the host too: no more requests run at once for it",
)
HEADS = Ours(("--memory", "--host-memory"), "--memory for the device's, --host-memory for the computer's")

_ROWS: tuple[tuple[str, Ours | str], ...] = (
    ("batch-size batch bs bsz b train-batch-size", BATCH),
    ("per-device-train-batch-size micro-batch-size train-micro-batch-size-per-gpu per-device-batch-size mbs",
     "--micro-batch"),
    ("global-batch-size gbs total-batch-size", "--global-batch"),
    ("gradient-accumulation-steps gradient-accumulation grad-accum accumulate", ACCUMULATED),
    ("gpus gpu-count num-gpus n-gpus ngpus ngpu world-size num-processes cards num-accelerators devices count",
     "--num-devices"),
    ("nodes nnodes num-nodes machines hosts num-machines gpus-per-node nproc-per-node nproc", DEVICES),
    ("data-parallel-size data-parallel dp dp-size data-parallel-replicas", COPIES),
    ("tensor-split ts split-mode sm", UNLIKE),
    ("gpu card hardware accelerator gpu-type gpu-name gpu-model chip device-type", "--device"),
    ("model-name model-id model-path model-name-or-path pretrained-model repo-id hf-model checkpoint", "--model"),
    ("mode job use-case training-type method", "--task"),
    ("users clients parallel np streams max-batch-size num-parallel "
     "max-concurrency sequences sessions", "--concurrency"),
    ("ctx context-length context-size context-window n-ctx num-ctx c max-context max-total-tokens", "--context"),
    ("max-seq-length max-seq-len max-length sequence-length seq-length seqlen sequence-len cutoff-len "
     "model-max-length max-source-length", "--seq-len"),
    ("block-size", _other("--seq-len")),
    ("input-len input-length input-tokens prompt-len prompt-length prompt-tokens isl pp-tokens random-input-len "
     "random-input", "--prompt"),
    ("max-tokens max-new-tokens output-len output-length n-predict num-predict osl random-output-len random-output",
     "--output-tokens"),
    ("qps rps requests-per-second arrival-rate", "--rate"),
    ("kv-offloading-size kv-offloading-backend kv-transfer-config lmcache enable-hierarchical-cache "
     "hicache-size hicache-ratio enable-prefix-caching cache-reuse", HOST_CACHE),
    ("time-to-first-token first-token-latency ttft-slo", "--ttft"),
    ("time-per-output-token inter-token-latency itl tpot-slo", "--tpot"),
    ("speculative-config speculative-algorithm", DRAFTED),
    ("speculative-model speculative-draft-model-path md model-draft draft-model", "--draft"),
    ("num-speculative-tokens speculative-num-draft-tokens draft-max draft-n", "--spec-tokens"),
    ("tensor-parallel-size tensor-model-parallel-size tensor-parallel tp-size", "--tp"),
    ("pipeline-parallel-size pipeline-model-parallel-size pipeline-parallel pp-size", "--pp"),
    ("virtual-pipeline-model-parallel-size virtual-pipeline-parallel-size", "--interleave"),
    ("num-layers-per-virtual-pipeline-stage", CHUNKS),
    ("context-parallel-size context-parallel cp-size sequence-parallel-size", "--cp"),
    ("expert-parallel-size expert-model-parallel-size ep-size expert-parallel", "--ep"),
    ("enable-expert-parallel", _other("--ep")),
    ("enable-dp-attention enable-attention-dp attention-dp dp-attention data-parallel-attention", OWN_ATTENTION),
    ("load-in-4bit load-4bit use-4bit 4bit bnb-4bit", LOADED),
    ("load-in-8bit load-8bit use-8bit 8bit", EIGHT),
    ("quantization quantize quantisation quant-type weight-format", "--quant"),
    ("bits wbits q-bits", _other("--quant")),
    ("dtype torch-dtype data-type compute-dtype", "--precision"),
    ("bf16 fp16 half mixed-precision", HALVES),
    ("fp8-format fp8 fp8-recipe", NARROW),
    ("kv-cache-dtype kv-cache-type cache-type-k cache-type-v ctk ctv kv-quant", "--kv-dtype"),
    ("kv-bits", _other("--kv-dtype")),
    ("ub n-ubatch num-batch", "--ubatch"),
    ("n-gpu-layers ngl num-gpu-layers num-gpu", "--gpu-layers"),
    ("ncmoe", "--n-cpu-moe"),
    ("override-tensor ot kt-cpu-moe", _other("--n-cpu-moe")),
    ("cmoe", _other("--cpu-moe")),
    ("ram-bandwidth host-memory-bandwidth", "--host-bandwidth"),
    ("ddr memory-bandwidth", _other("--host-bandwidth")),
    ("attn-implementation attn", "--attention"),
    ("flash-attn flash-attention fa use-flash-attention use-flash-attn", _other("--attention")),
    ("recompute-granularity", "--checkpointing"),
    ("activation-checkpointing recompute grad-checkpointing use-gradient-checkpointing recompute-activations "
     "recompute-method", _other("--checkpointing")),
    ("optim optimizer-type optimiser opt", "--optimizer"),
    ("exp-avg-dtype exp-avg-sq-dtype use-precision-aware-optimizer bf16-optimizer-states", MOMENTS),
    ("num-layers layers-to-transform", LAST_LAYERS),
    ("lora-r r rank lora-dim adapter-rank", "--lora-rank"),
    ("target-modules lora-target-modules lora-target", "--lora-targets"),
    ("zero-stage deepspeed-stage stage sharding-strategy fsdp-sharding-strategy", "--zero"),
    ("deepspeed zero-optimization", ZERO),
    ("use-distributed-optimizer", SHARDED),
    ("sequence-parallel", DIVIDED),
    ("use-liger-kernel use-liger liger-kernel", LIGER),
    ("torch-compile compile", COMPILED),
    ("cpu-offload offload-optimizer offload-params cpu-offload-gb offload-param offload-to-cpu", _other("--offload")),
    ("nvme ssd disk nvme-path offload-nvme nvme-bandwidth", _other("--drive")),
    ("vram gpu-memory gpu-vram unified-memory memory-size device-memory mem", "--memory"),
    ("reserve-vram reserved-vram vram-reserve gpu-overhead fit-target", _other("--reserve")),
    ("wired-limit-mb iogpu-wired-limit iogpu-wired-limit-mb wired-memory working-set metal-limit vram-limit",
     _other("--wired-limit")),
    ("ram system-ram cpu-memory cpu-ram host-ram main-memory", HEADS),
    ("backend framework runtime software launcher", "--engine"),
    ("max-steps steps train-iters iterations iters num-train-steps", STEPS),
    ("num-tokens train-tokens total-tokens dataset-tokens", "--tokens"),
    ("num-train-epochs num-epochs n-epochs epoch train-epochs passes", "--epochs"),
    ("use-vllm vllm-mode rollout rollout-name rollout-backend inference-engine", _other("--rollout-engine")),
    ("vllm-enable-sleep-mode enable-sleep-mode sleep-mode free-cache-engine", _other("--sleep")),
    ("dataset-size data-bytes dataset-bytes corpus corpus-size text-size", DATA),
    ("chars-per-token characters-per-token tokenizer-ratio compression-ratio", _other("--bytes-per-token")),
    ("dataloader-num-workers num-workers dataloader-workers dataloader data-loader loader-throughput", LOADED_DATA),
    ("num-samples samples train-samples num-examples rows max-samples", "--examples"),
    ("dataset", _other("--examples")),
    ("price-per-hour cost-per-hour hourly-price hourly gpu-price rent", "--price"),
    ("cost", Ours(("--price", "--budget"), "--price, of an hour; --budget, of all")),
    ("electricity-price kwh-price power-price", "--electricity"),
    ("max-time time-limit", "--deadline"),
    ("timeout max-days", DAYS),
    ("max-cost max-price max-usd money", "--budget"),
    ("power-cap power watts tdp pl wattage max-power", "--power-limit"),
    ("flops-utilization", "--mfu"),
    ("mfu-percent utilization efficiency", _other("--mfu")),
    ("interconnect bandwidth network-bandwidth link", _other("--network")),
)  # fmt: skip


def _table() -> dict[str, Ours]:
    rows = ((names, Ours((ours,), ours, same=True) if isinstance(ours, str) else ours) for names, ours in _ROWS)
    task = BY_NAME["task"]
    tasks = {**{name: name for name in task.choices}, **task.synonyms}
    asked = {name: Ours(("--task",), f"--task {ours}") for name, ours in tasks.items()}
    return {**asked, **{name: ours for names, ours in rows for name in names.split()}}


ELSEWHERE: Mapping[str, Ours] = _table()
"""Other tools' names, without the dashes before them."""


def ours(name: str) -> Ours | None:
    """What a name of another tool is called here: `--batch-size`, `-ngl`, `n_ctx`."""
    return ELSEWHERE.get(name.lstrip("-").lower().replace("_", "-"))


def taken(word: str) -> str | None:
    """A word of a command line with our option in place of another tool's that takes the same value, be that behind a
    `=` or the next word; None where it is none.
    """
    name, equals, value = word.partition("=")
    found = ours(name) if len(name) > 1 and name[0] == "-" else None
    return f"{found.flags[0]}{equals}{value}" if found is not None and found.same else None


PAGED = "--optimizer {}; with --offload optimizer its states lie in main memory, where pages go that have no room"

VALUES: Mapping[str, Mapping[str, str]] = {
    "task": {
        "rlhf": "--task grpo --loss ppo, with a --reward-model; --task dpo learns from pairs",
        "cpt": "--task pretrain with --tokens, or --task finetune",
        "pissa": "--task lora: adapters that begin otherwise are as large",
        **{name: f"--task {each.task} --loss {name}" for name, each in OBJECTIVES.items() if name != each.task},
        **dict.fromkeys(("gspo", "dapo", "drgrpo", "cispo", "reinforce"), "--task grpo: it differs in the loss alone"),
    },
    "optimizer": {
        **{name: PAGED.format("adamw-8bit") for name in ("paged-adamw-8bit", "pagedadamw8bit", "paged-ademamix-8bit")},
        **{name: PAGED.format("adamw") for name in ("paged-adamw", "paged-adamw-32bit", "pagedadamw")},
        **{name: PAGED.format("lion") for name in ("paged-lion", "paged-lion-32bit", "paged-lion-8bit")},
    },
}
"""Values of other tools that are here said by several settings, by the setting they are given to."""


def meant(setting: str, value: str) -> str | None:
    """How a value of another tool is said here: `--task orpo`; None where nobody knows."""
    return VALUES.get(setting, {}).get(value.lower().replace("_", "-"))


_NO_MATTER = (
    "lr learning-rate lr-scheduler lr-scheduler-type warmup warmup-steps warmup-ratio weight-decay max-grad-norm "
    "adam-beta1 adam-beta2 lora-alpha alpha seed temperature temp top-p top-k min-p repetition-penalty "
    "port host api-key served-model-name trust-remote-code tokenizer revision download-dir load-format "
    "enable-chunked-prefill swap-space threads no-mmap mlock cont-batching main-gpu keep-alive jinja chat-template "
    "packing group-by-length output-dir save-steps logging-steps eval-steps report-to push-to-hub"
)
NO_MATTER = frozenset(_NO_MATTER.split())
"""Other tools' names of what changes neither memory nor time."""


def is_no_matter(name: str) -> bool:
    """Whether a name of another tool is about nothing that is estimated."""
    return name.lstrip("-").lower().replace("_", "-") in NO_MATTER
