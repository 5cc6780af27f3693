"""Everything that is fuzzed."""

from tests.fuzz.checkpoints import GGUF, SAFETENSORS
from tests.fuzz.commands import COMMAND
from tests.fuzz.configs import CONFIG
from tests.fuzz.deployments import DEPLOYMENT
from tests.fuzz.tables import AZURE, EVIDENCE, MOONCAKE

TARGETS = {
    target.name: target for target in (CONFIG, GGUF, SAFETENSORS, AZURE, MOONCAKE, EVIDENCE, DEPLOYMENT, COMMAND)
}
SHARES = {  # of a million: what costs more is asked less often
    "config": 200_000, "gguf": 150_000, "safetensors": 150_000, "azure": 150_000, "mooncake": 150_000,
    "evidence": 80_000, "deployment": 110_000, "command": 10_000,
}  # fmt: skip
