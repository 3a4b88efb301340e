/* Calls an exported function of several threads, alone and from three threads at once; prints
   how many threads it created, and whether all values are those of one thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "team.h"

enum { SIZE = 500000, CALLERS = 3 };

static int created;
static double x[SIZE], expected[SIZE];

#ifdef COUNTED
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *data) {
  __atomic_add_fetch(&created, 1, __ATOMIC_RELAXED);
  return __real_pthread_create(thread, how, run, data);
}
#endif

static void *repeat(void *failed) {
  double value, *slope = malloc(sizeof x);
  for (int k = 0; k < 3; ++k)
    if (several(x, SIZE, &value, slope) || memcmp(slope, expected, sizeof x)) *(int *)failed = 1;
  free(slope);
  return NULL;
}

int main(void) {
  pthread_t callers[CALLERS];
  int failed[CALLERS + 1] = {0};
  double value;
  for (int k = 0; k < SIZE; ++k) x[k] = 4.0 * k / SIZE - 2.0;
  if (alone(x, SIZE, &value, expected) || created) return 1;
  repeat(&failed[CALLERS]);
  int by_itself = created;
  for (int k = 0; k < CALLERS; ++k) pthread_create(&callers[k], NULL, repeat, &failed[k]);
  for (int k = 0; k < CALLERS; ++k) pthread_join(callers[k], NULL);
  for (int k = 0; k <= CALLERS; ++k)
    if (failed[k]) return 2;
  printf("%d\n", by_itself);
  return 0;
}
