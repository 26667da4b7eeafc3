use strict;
use IPC::Shareable qw(:lock);
use POSIX ();
my ($rounds) = @ARGV;
my $knot = tie my $count, 'IPC::Shareable', { key => $$, create => 1, destroy => 1 };
$count = 0;
my @children = map {
    my $child = fork;
    die "fork: $!" unless defined $child;
    if (!$child) {
        for (1 .. $rounds) {
            $knot->lock(LOCK_EX);
            $count++;
            $knot->unlock;
        }
        POSIX::_exit(0);
    }
    $child
} 1 .. 4;
waitpid $_, 0 for @children;
print "$count\n";
