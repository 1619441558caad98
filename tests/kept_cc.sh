#!/bin/sh
# `cc` for builds that tests start: it keeps the objects that it makes of C, for C is most of a small build's time.
# In: a compiler's words as SCons writes them, in a project's folder or a release's. Objects lie beside the copy of this
# script that `conftest.py` makes for each run of tests; what an object is made of is in its name.
for word; do
    if [ "$before" = -o ]; then out=$word; else words="$words $word"; fi
    case $word in -c) compiles=1 ;; -MD) tells=1 ;; *.c) source=$word ;; esac
    before=$word
done
[ ! "$tells" ] && [ "$compiles" ] && [ "$source" ] && [ "$out" ] || exec cc "$@"
case $source in # no header of the runtime is generated
    */src/runtime/*) headers="${source%/src/*}/include/precast.h ${source%/*}/*.h" ;;
    *) headers="${source%/src/*}/include/*.h ${source%/*}/runtime/*.h" ;;
esac
key=$({ echo "$words" && cat "$source" $headers; } | sha256sum)
kept=${0%/*}/${key%% *}.o
if [ ! -f "$kept" ]; then
    cc "$@" && cp "$out" "$kept.$$" && mv "$kept.$$" "$kept"
    exit
fi
cp "$kept" "$out"
