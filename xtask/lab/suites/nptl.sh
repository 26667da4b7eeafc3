#!/bin/sh
# Builds glibc's tests of threads as programs of their own: nptl.sh SOURCE OUT
#
# SOURCE is the unpacked source of glibc. It is neither configured nor built: what the tests need of
# its `support` folder becomes a library in OUT, and the programs are in OUT/bin. They run on the
# glibc of the machine. A test that needs internals of glibc, or a module beside it, does not build;
# OUT/not-built names these.
set -eu
source=$(cd "$1" && pwd)
mkdir -p "$2/shim" "$2/support" "$2/bin"
cd "$2"
out=$(pwd)

# The headers that the tests include by the names that they have inside of glibc.
for folder in support sysdeps posix signal stdlib; do
    ln -sfn "$source/$folder" shim/$folder
done
ln -sf "$source/test-skeleton.c" "$source/test-errno.h" "$source/sysdeps/generic/tst-stack-align.h" shim/
for header in libc-diag intprops array_length libc-pointer-arith verify; do
    ln -sf "$source/include/$header.h" shim/
done
# Four tests include the next two, and use nothing of them.
mkdir -p shim/elf
for header in config libc-symbols pthreadP elf/dl-tunables; do : > "shim/$header.h"; done
printf '#include <elf.h>\n#define _STACK_GROWS_DOWN 1\n#define DEFAULT_STACK_PERMS (PF_R | PF_W)\n' \
    > shim/stackinfo.h
printf 'const char support_objdir_root[] = "/", support_srcdir_root[] = "/";\n' > shim/paths.c

compile="gcc -std=gnu11 -O2 -w -D_GNU_SOURCE -DTIMEOUTFACTOR=1 -fexceptions -I$out/shim -I$source/support"
: > not-built
for file in "$source"/support/*.c shim/paths.c; do
    name=$(basename "$file" .c)
    # The first have a main of their own.
    case $name in
        support_test_main) ;;
        *_main | tst-* | *-container | test-run-command | test-driver | links-dso-*) continue ;;
    esac
    $compile -include limits.h -c "$file" -o "support/$name.o" 2> /dev/null || true
done
ar rc libsupport.a support/*.o

for file in "$source"/nptl/tst-*.c "$source"/sysdeps/pthread/tst-*.c; do
    name=$(basename "$file" .c)
    # Parts of other tests.
    case $name in *mod | *mod[a-f] | *aux | *-common | *-skeleton) continue ;; esac
    case $name in *-static) link=-static ;; *) link= ;; esac
    $compile $link -I"$source/nptl" -I"$source/sysdeps/pthread" "$file" -o "bin/$name" libsupport.a \
        -lpthread -lrt -ldl -lm 2> "bin/$name.log" && rm "bin/$name.log" || echo "$name" >> not-built
done
echo "$(find bin -type f ! -name '*.log' | wc -l) programs; $(wc -l < not-built) do not build"
