#!/system/bin/sh
# Runs every turn of this bundle on this machine, with nothing but a shell and tools that toybox has:
#
#     sh run.sh [RESULTS]
#
# Each turn is a process of its own (`runner`), and its line is on the disk before the next turn begins. Started again
# with the same folder it goes on where it was cut short. `adreno-bench ingest` judges what it wrote.

say() { echo "[$(date +%H:%M:%S)] $*" >&2; }
end() { code=$1; shift; echo "run.sh: $*" >&2; exit "$code"; }
lost() { end 4 "$results cannot be written: is there space?"; }

case ${1-} in -*) end 2 "usage: sh run.sh [RESULTS]" ;; esac
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
here=$(cd "$here" && pwd) || exit 4
mkdir -p "${1:-results}/work/lines" || end 4 "${1:-results} cannot be made"
results=$(cd "${1:-results}" && pwd) || exit 4
work=$results/work
lines=$work/lines
runner=
umask 077
gather() { cat "$lines"/[1-9]* >"$work/all" && sync && mv "$work/all" "$results/turns.jsonl"; }
stop() {
  [ -n "$runner" ] && kill -9 "$runner" 2>/dev/null
  gather 2>/dev/null
  end 130 "stopped; run it again with the same folder to go on"
}
trap stop INT TERM HUP
cd "$here" || exit 4
opencl=
searched() { echo "$here/lib/$1${opencl:+:$opencl}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; } # BUILD
# What one library has and another lacks, Android's loader finds only in what the executable needs or is preloaded.
preloaded() { [ -e "cases/$1/preload" ] && head -n 1 "cases/$1/preload"; } # BUILD
launch() { # BUILD ARGUMENT...
  LD_PRELOAD=$(preloaded "$1")${LD_PRELOAD:+:$LD_PRELOAD} LD_LIBRARY_PATH=$(searched "$1")
  export LD_PRELOAD LD_LIBRARY_PATH
  shift
  exec ./runner "$@"
}

for tool in cat chmod cp date head mkdir mv printf sed sha256sum sync uname; do
  command -v "$tool" >/dev/null || end 4 "this machine has no $tool"
done
sha256sum -c files.sha256 >/dev/null 2>"$work/log" || end 2 "a file is missing or changed since it was packed: copy the bundle again"
[ -e link.sh ] && opencl=$(sh link.sh "$work/opencl")
chmod 755 runner && ./runner quote turns >/dev/null 2>"$work/log" ||
  (launch head quote turns) >/dev/null 2>"$work/log" ||
  end 4 "programs do not run here: unpack the bundle where they do (/data/local/tmp): $(cat "$work/log")"
if [ -e "$results/manifest.json" ]; then
  [ "$(sha256sum <manifest.json)" = "$(sha256sum <"$results/manifest.json")" ] || end 2 "$results is of another bundle: name another folder"
else
  cp manifest.json "$work/new" && mv "$work/new" "$results/manifest.json" || lost
fi

# What the runner says of a turn's file, to $work/said. In the background, so that a signal is heard at once.
run() { # BUILD WHAT FILE [KEPT]
  launch "$1" "$2" "$3" "$work/log" ${4:+"$4"} >"$work/said" </dev/null &
  runner=$!
  wait "$runner" || {
    mv "$work/said" "$work/half"
    [ -s "$work/half" ] || echo '"broken": "the runner itself was killed"' >"$work/half"
    printf '{%s}' "$(cat "$work/half")" >"$work/said"
  }
  runner=
}

quote() { (launch head quote "$1"); }

gpus() { (launch head gpus); }

section() { # NAME COMMAND...
  name=$1
  shift
  echo "@adreno-bench $name"
  "$@" 2>/dev/null
  echo "
@adreno-bench 0"
}

# What the device says of its heat and pace. Called in a subshell: a signal's words must not go where its complaints go.
look() {
  sh look.sh
  section gpus gpus
}

# Adds $work/body as a line: its link first, which binds it to the line before. Nothing is half written: a file is moved.
number=0
link=
add() { # KIND
  number=$((number + 1))
  sum=$({ echo "$link"; cat "$work/body"; } | sha256sum) || lost
  link=${sum%% *}
  { echo -n "$link "; cat "$work/body"; echo; } >"$work/new" && sync && mv "$work/new" "$lines/$((1000000 + number))-$1" || lost
  gather || lost
}

done_before=0
sum=$(sha256sum <manifest.json)
link=${sum%% *}
for line in "$lines"/*; do
  [ -e "$line" ] || continue
  number=$((number + 1))
  link=$(head -c 64 "$line")
  case $line in
    *-seen) done_before=$((done_before + 1)) ;;
    *-end) say "all turns are done; give $results to \`adreno-bench ingest\`"; exit 0 ;;
  esac
done

if [ -e "$work/run" ]; then
  read -r run <"$work/run"
else
  read -r run </proc/sys/kernel/random/uuid
  echo "$run" >"$work/run" || lost
fi

run head who cases/head/device.txt
files=$(sed -n 's/.*\\u0022files\\u0022: \[\\u0022\([^]]*\)\\u0022\].*/\1/p' "$work/said" | sed 's/\\u0022, \\u0022/ /g')
{
  section properties getprop
  section machine uname -m
  section node uname -n
  section system uname -sr
  section processor uname -p
  section chip eval 'cd /sys/devices/soc0 && cat machine family soc_id revision'
  section board cat /sys/firmware/devicetree/base/model
  [ -n "$files" ] && section sums sha256sum $files
} >"$work/who"
{ echo -n "{\"kind\": \"device\", \"run\": \"$run\", \"machine\": "; quote "$work/who"; echo -n ', "said": '; cat "$work/said"; echo -n '}'; } >"$work/body" || lost
case $(cat "$work/said") in *'"done": true'*) ;; *) end 4 "OpenCL does not work here: $(cat "$work/said")" ;; esac
add device

total=0
while read -r build case; do total=$((total + 1)); done <turns
say "turns: $total, done before: $done_before"
turn=0
while read -r build case <&3; do
  turn=$((turn + 1))
  [ "$turn" -le "$done_before" ] && continue
  at=$(date -u +%Y-%m-%dT%H:%M:%S.%N)
  say "$turn/$total $build $case"
  echo -n '{}' >"$work/said"
  : >"$work/before"
  : >"$work/after"
  if [ -e "cases/$build/$case.txt" ]; then
    mkdir -p "$work/kept/$build" || lost
    (look) >"$work/before" 2>/dev/null </dev/null
    run "$build" turn "cases/$build/$case.txt" "$work/kept/$build"
    (look) >"$work/after" 2>/dev/null </dev/null
  fi
  {
    echo -n "{\"kind\": \"seen\", \"turn\": [\"$build\", \"$case\"], \"at\": \"$at\", \"before\": "
    quote "$work/before"
    echo -n ', "after": '
    quote "$work/after"
    echo -n ', "said": '
    cat "$work/said"
    echo -n '}'
  } >"$work/body" || lost
  add seen
done 3<turns

run head peaks cases/head/device.txt
{ echo -n '{"kind": "peaks", "said": '; cat "$work/said"; echo -n '}'; } >"$work/body" || lost
add peaks
echo -n '{"kind": "end"}' >"$work/body" || lost
add end
say "done; give $results to \`adreno-bench ingest\`"
