#!/bin/bash
# Two hosts, each a network namespace with a name of its own, joined by a cable; both offer a virtual phone through a
# tracker on the first, where a run and a search then use the two.
#   unshare --user --map-root-user --net --uts --mount --pid --fork --kill-child --mount-proc two_hosts.sh PYTHON FOLDER
# FOLDER has the suite, its network, and the caches `here`, `offered` and `there`. When this script ends, all that it
# started does.
set -eu
python=$1
cd "$2"
bench() { "$python" -c 'from harness.cli import main; main()' "$@"; }
bench_there() { nsenter --target "$peer" --net --uts -- "$python" -c 'from harness.cli import main; main()' "$@"; }
wait_for() { for _ in $(seq 3000); do if "$@"; then return; fi; sleep 0.1; done; echo "never: $*"; return 1; }

hostname here
ip link set lo up
unshare --net --uts sh -c 'hostname there; exec sleep 1000' &
peer=$!
wait_for sh -c "[ \$(nsenter --target $peer --uts hostname) = there ]" 2>/dev/null
ip link add cable type veth peer name cable netns "$peer"
ip address add 10.77.0.1/24 dev cable
ip link set cable up
nsenter --target "$peer" --net -- sh -c 'ip address add 10.77.0.2/24 dev cable; ip link set cable up; ip link set lo up'

"$python" -m tvm.exec.rpc_tracker --host 10.77.0.1 --port 9190 --port-end 9191 2>tracker.log &
wait_for grep -q 'bind to' tracker.log
ADRENO_BENCH_CACHE=$PWD/offered bench fleet serve --tracker 10.77.0.1:9190 --host 10.77.0.1 --device virtual 2>here.log &
ADRENO_BENCH_CACHE=$PWD/there bench_there fleet serve --tracker 10.77.0.1:9190 --host 10.77.0.2 --device virtual 2>there.log &
wait_for grep -q 'is offered as' here.log
wait_for grep -q 'is offered as' there.log
ADRENO_BENCH_CACHE=$PWD/here bench run --tracker 10.77.0.1:9190 --device kind=virtual
ADRENO_BENCH_CACHE=$PWD/here bench tune --tracker 10.77.0.1:9190 --case 'plain-opencl-*' --trials 4
