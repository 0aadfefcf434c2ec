#!/bin/sh
# The tour that ./dev demo gives: what is shown after a "$" is what runs.
set -eu
[ $# -eq 3 ] || {
    cat >&2 <<'TEXT'
usage: demo.sh PREFIX MODEL EXAMPLES
  PREFIX    an installation of khub
  MODEL     the folder of a sentence-embedding model
  EXAMPLES  where the programs of examples/ were built
(./dev demo builds all three and gives the tour)
TEXT
    exit 2
}
prefix=$(realpath "$1") model=$(realpath "$2") examples=$(realpath "$3")
PATH=$prefix/bin:$examples:$PATH
room=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$room"' EXIT
cd "$room"

bold= faint= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$(printf '\033[1m') faint=$(printf '\033[2m') plain=$(printf '\033[0m')
fi
tell() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
try() { printf '%s  $ %s%s\n\n' "$faint" "$1" "$plain"; eval "$1"; }

tell "1. What this machine is"
try "khub platform"

tell "2. A Hub for this room"
# A repository as the Hub has them: builds for machines that this one isn't stand beside ours.
builds=hub/demo/activation/v1/build
mkdir -p "$builds"
cp -R "$prefix"/share/khub/kernels/khub/activation/build/* "$builds"
for other in torch210-cxx11-cu128-x86_64-linux torch-stable-abi29-rocm71-x86_64-linux tvm-ffi01-metal-aarch64-darwin \
    tvm-ffi01-cu130-x86_64-linux torch-universal torch-next-abi1-cpu-x86_64-linux; do
    mkdir "$builds/$other"
    cp "$builds"/tvm-ffi01-cpu-*/metadata.json "$builds/$other"
done
try "khub serve hub --port 0 >address 2>requests & server=\$!"
while [ ! -s address ]; do sleep 0.02; done
try "export HF_ENDPOINT=\$(cat address) HF_HUB_CACHE=\$PWD/cache"

tell "3. Which build fits this machine, and why the others don't"
try "khub variants demo/activation@v1"

tell "4. Fetched once: cold, then warm, then without a network; and what the Hub was asked"
try "khub get demo/activation@v1"
try "khub get demo/activation@v1"
try "khub get demo/activation@v1 --offline"
try "cut -d' ' -f3-6 requests"

tell "5. What it can do, and one call"
try "khub functions demo/activation@v1"
printf '\n'
try "khub call demo/activation@v1:gelu out=float32[3] '[-1, 0, 1]'"

tell "6. Sentences, embedded by a real model, without and with kernels: how alike they are"
ln -s "$model" MiniLM
try 'similarity MiniLM \
      "A cat sleeps on the warm windowsill." \
      "The old bridge was rebuilt last year." \
      "The kitten is napping by the window." \
      "Interest rates rose again in March." \
      "The central bank has raised its key rate."'
