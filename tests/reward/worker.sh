#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A reward worker for tests: worker.sh KIND [FILE]. Most kinds misbehave at the response "bad", some at any. The kind
# "gate" writes what it is asked to FILE.asked, and answers "bad" once there is a FILE.
kind=$1
file=$2
answer() { echo "{\"id\": $1, \"score\": ${2:-0.5}, \"components\": {\"style\": 0.25}}"; }
[ "$kind" = exits ] && exit 0
[ "$kind" = fails ] && { echo "no weights here" >&2; exit 3; }
[ "$kind" = slow_start ] && sleep 0.5
[ "$kind" = chatty ] && { echo "loading"; echo; }
while read -r line; do
  id=${line#*:}
  id=${id%%,*}
  [ "$kind" = gate ] && echo "$line" >>"$file.asked"
  case $line in
  *'"response":"bad"'*)
    case $kind in
    hangs | tires | bad_only) sleep 600 ;;
    gate) while [ ! -e "$file" ]; do sleep 0.02; done; answer "$id" ;;
    dies) kill -9 $$ ;;
    half) printf '{"id": '; exit 1 ;;
    mute) exec >&-; sleep 600 ;;
    rubbish) echo "Traceback (most recent call last):" ;;
    wrong_id) answer $((id + 1)) ;;
    twice) answer "$id"; answer "$id" ;;
    huge) while :; do printf '%01000d' 0; done ;;
    reports) echo "{\"id\": $id, \"error\": \"no such judge\"}" ;;
    nan) echo "{\"id\": $id, \"score\": null}" ;;
    once) if [ -e "$file" ]; then answer "$id"; else : >"$file"; exit 1; fi ;;
    deaf) exec <&-; sleep 600 ;;
    *) answer "$id" 0.75 ;;
    esac ;;
  *)
    case $kind in
    first) case $line in *'"sample":0'*) echo "{\"id\": $id, \"error\": \"not the first\"}"; continue ;; esac ;;
    meets) # right only with four at work: waits until all of them have come, for some seconds
      mkdir -p "$file"; : >"$file/$id"; n=0
      while [ "$(ls "$file" | wc -l)" -lt 4 ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
      [ $n -lt 100 ] && answer "$id" 1 || answer "$id" 0; continue ;;
    second) case $line in *'"index":0,'*) echo "{\"id\": $id, \"error\": \"not the first prompt\"}"; continue ;; esac ;;
    bad_only) echo "{\"id\": $id, \"error\": \"good\"}"; continue ;;
    children) sleep 600 & ;;
    tires) answer "$id" 0.75; continue ;;
    esac
    answer "$id" ;;
  esac
done
[ "$kind" = stays ] && sleep 600
