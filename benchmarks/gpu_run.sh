#!/usr/bin/env bash
# Trains SmolLM2 on a GPU, twice from the same start: both players against each other (code-a1), and the coder on
# the problems' own tests (golden-tests). Each run ends with its rewards, what it reaches on held-back tests, and
# the share of time and the tokens per second of each phase.
#
#   benchmarks/gpu_run.sh [FOLDER]      more options for both runs: ARGS="--max-steps 30 --seed 1"
#
# Needs: pip install 'codea1-env[llm,vllm]'. Without vLLM: ARGS="--backend transformers --generation-batch 512".
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-runs/gpu}
python=${PYTHON:-python}

for baseline in code-a1 golden-tests; do
    # shellcheck disable=SC2086  # ARGS are words
    "$python" -m codea1_env.cli train --preset smollm2-gpu --baseline "$baseline" \
        --output-dir "$folder/$baseline" ${ARGS:-}
done
