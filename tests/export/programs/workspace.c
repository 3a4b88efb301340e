/* Calls an exported function with memory of its own, and counts calls of malloc. */
#include <stdio.h>
#include <stdlib.h>

#include "workspace.h"

static int allocated;

void *__real_malloc(size_t);
void *__wrap_malloc(size_t size) {
  ++allocated;
  return __real_malloc(size);
}

int main(void) {
  double x[9], before[9], after[9], value, again;
  struct numgrad_workspace workspace = {NULL, 0, 0};
  for (int k = 0; k < 9; ++k) x[k] = 0.3 * k - 1.0;
  if (system_and_slope(x, &value, before, &workspace) || !allocated) return 1;
  workspace.size = workspace.needed;
  workspace.memory = malloc(workspace.size);
  allocated = 0;
  for (int k = 0; k < 1000; ++k)
    if (system_and_slope(x, &again, after, &workspace) || again != value) return 2;
  if (allocated || workspace.needed != workspace.size) return 3;
  if (system_and_slope(x, &again, after, NULL) || !allocated || again != value) return 4;
  free(workspace.memory);
  for (int k = 0; k < 9; ++k)
    if (before[k] != after[k]) return 5;
  printf("%.17g\n", value);
  return 0;
}
