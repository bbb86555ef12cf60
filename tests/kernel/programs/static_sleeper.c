/* A program that is linked statically, and waits. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
  printf("ready\n");
  fflush(stdout);
  sleep(60);
  return 0;
}
