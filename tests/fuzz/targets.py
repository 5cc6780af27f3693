"""Everything that is fuzzed."""

from tests.fuzz.checkpoints import GGUF, SAFETENSORS
from tests.fuzz.commands import COMMAND
from tests.fuzz.configs import CONFIG
from tests.fuzz.deployments import DEPLOYMENT
from tests.fuzz.tables import AZURE, EVIDENCE, MOONCAKE

TARGETS = {
    target.name: target for target in (CONFIG, GGUF, SAFETENSORS, AZURE, MOONCAKE, EVIDENCE, DEPLOYMENT, COMMAND)
}
SHARES = {}
