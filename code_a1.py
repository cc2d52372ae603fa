"""The module that verifiers looks for under the name `code-a1`: see `codea1_env.integrations.verifiers_env`."""

from codea1_env.integrations.verifiers_env import (
    CodeA1Env,
    CodeA1Taskset,
    OneCall,
    load_environment,
)

__all__ = ["CodeA1Env", "CodeA1Taskset", "OneCall", "load_environment"]
