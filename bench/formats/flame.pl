#!/usr/bin/perl
# Draws folded stacks as an SVG of nested rectangles. Assay's own, as small as the job allows.
use strict;
use warnings;

my $WIDTH = 1200;
my $ROW = 16;
my $NARROWEST = 0.1;
sub escaped {
  my ($text) = @_;
  $text =~ s/&/&amp;/g;
  $text =~ s/</&lt;/g;
  $text =~ s/>/&gt;/g;
  return $text;
}

my (@open, @boxes, $deepest);
my $at = 0;
$deepest = 0;
my @before = ();
# Sorted stacks share their beginning with their neighbour: what differs ends here and begins anew.
my $move_to = sub {
  my @now = @_;
  my $same = 0;
  ++$same while $same < @before && $same < @now && $before[$same] eq $now[$same];
  while (@open > $same) {
    my ($name, $begin) = @{pop @open};
    push @boxes, [$name, $begin, $at, scalar @open];
  }
  push @open, [$now[$_], $at] for $same .. $#now;
  $deepest = @open if @open > $deepest;
  @before = @now;
};
while (my $line = <STDIN>) {
  next unless $line =~ /^(.*) (\d+)$/;
  my ($stack, $count) = ($1, $2);
  $move_to->('all', split /;/, $stack);
  $at += $count;
}
$move_to->();
exit 0 if $at == 0;
my $height = ($deepest + 2) * $ROW;
print qq{<svg xmlns="http://www.w3.org/2000/svg" width="$WIDTH" height="$height" font-size="11" font-family="monospace">\n};
for my $box (@boxes) {
  my ($name, $begin, $end, $depth) = @$box;
  my $wide = ($end - $begin) / $at * $WIDTH;
  next if $wide < $NARROWEST;
  my $share = sprintf '%.2f', 100 * ($end - $begin) / $at;
  my $red = 205 + length($name) * 7 % 50;
  my $green = length($name) * 31 % 200;
  printf qq{<g><title>%s (%d, %s%%)</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="rgb(%d,%d,55)"/>},
    escaped($name), $end - $begin, $share, $begin / $at * $WIDTH, $height - ($depth + 1) * $ROW, $wide, $ROW - 1, $red, $green;
  my $fits = int($wide / 7);
  if ($fits >= 3) {
    my $text = length $name > $fits ? substr($name, 0, $fits - 2) . '..' : $name;
    printf qq{<text x="%.1f" y="%d">%s</text>}, $begin / $at * $WIDTH + 3, $height - $depth * $ROW - 4, escaped($text);
  }
  print "</g>\n";
}
print "</svg>\n";
