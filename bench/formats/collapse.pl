#!/usr/bin/perl
# Folds the text of `perf script` into one line per distinct stack: "comm;root;…;leaf count".
# Assay's own, as small as the job allows: what people run between perf script and a flame graph.
use strict;
use warnings;

my (%count, @frames, $comm);
while (my $line = <STDIN>) {
  if ($line =~ /^\s+[0-9a-f]+ (.+) \(/) {  # "    7f12ab name+0x1f (/usr/lib/libc.so.6)"
    my $name = $1;
    $name =~ s/\+0x[0-9a-f]+$//;
    $name =~ tr/;/:/;
    push @frames, $name;
  } elsif ($line =~ /^(\S.*?)\s+\d+(?:\/\d+)?\s/) {  # "python3 1234 5678.90: 200000 cpu-clock:"
    $comm = $1;
    @frames = ();
  } elsif ($line =~ /^\s*$/ && defined $comm) {
    ++$count{join ';', $comm, reverse @frames};
    undef $comm;
  }
}
++$count{join ';', $comm, reverse @frames} if defined $comm;
print "$_ $count{$_}\n" for sort keys %count;
