#!/bin/sh
# The tour that ./dev demo gives: demo.sh PREFIX MODEL EXAMPLES
#   PREFIX    an installation of khub
#   MODEL     the folder of a sentence-embedding model
#   EXAMPLES  where the programs of examples/ were built
set -eu
khub=$1/bin/khub prefix=$1 model=$2 examples=$3
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

# tell WHAT COMMAND: a heading, and the command as one would type it.
tell() { printf '\n\033[1m%s\033[0m\n' "$1"; shift; [ $# -eq 0 ] || printf '\033[2m  $ %s\033[0m\n\n' "$*"; }

tell "1. What this machine is" khub platform
"$khub" platform

tell "2. Which build of a kernel fits it, and why the others don't" khub variants ./activation
# A repository as the Hub has them: builds for machines that this one isn't stand beside ours.
mkdir -p "$room/activation/build"
cp -R "$prefix"/share/khub/kernels/khub/activation/build/* "$room/activation/build/"
for other in torch210-cxx11-cu128-x86_64-linux torch-stable-abi29-rocm71-x86_64-linux tvm-ffi01-metal-aarch64-darwin \
    tvm-ffi01-cu130-x86_64-linux torch-universal torch-next-abi1-cpu-x86_64-linux; do
    mkdir "$room/activation/build/$other"
done
(cd "$room" && "$khub" variants ./activation)

tell "3. What it can do, and one call: [-1, 0, 1] through gelu" khub functions khub/activation
"$khub" functions khub/activation
printf '\n  gelu: '
"$examples/gelu"

tell "4. Sentences, embedded by a real model, without and with kernels" khub embed --model MiniLM --kernels ...
"$examples/similarity" "$model" \
    "A cat sleeps on the warm windowsill." \
    "The old bridge was rebuilt last year." \
    "The kitten is napping by the window." \
    "Interest rates rose again in March." \
    "The central bank has raised its key rate."
