#!/bin/bash
# A run on the nodes of a Slurm job: sbatch examples/cluster/slurm.sh
# The folder that it is sent from, with the environment .venv in it, must be there on all nodes.
#SBATCH --job-name=codea1
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=08:00:00
set -euo pipefail
. .venv/bin/activate

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(getent ahostsv4 "$head" | awk 'NR == 1 { print $1 }')
# With 16 processors a node: as many programs at the same time. Ray's processes need not give way to anybody.
export RAY_worker_niceness=0 RAY_USAGE_STATS_ENABLED=0
run=${RUN:-runs/slurm-$SLURM_JOB_ID}
again=()
if [ -f "$run/config.toml" ]; then again=(--resume); else again=(--preset tabular); fi

# `ray symmetric-run` starts Ray on every node, the command on the first, and stops Ray when that has ended.
srun --kill-on-bad-exit=1 ray symmetric-run \
    --address "$address:6379" --min-nodes "$SLURM_JOB_NUM_NODES" --num-cpus "$SLURM_CPUS_PER_TASK" -- \
    codea1 train "${again[@]}" --engine ray --address auto --workers 16 --output-dir "$run"
