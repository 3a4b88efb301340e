/* Calls exported functions 100,000 times from four threads, and prints results. */
#include "model.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifndef CALLS
#define CALLS 25000
#endif

enum { SIZE = 6, THREADS = 4 };

static double expected[2 + SIZE];

static int compute(double *out) {
  double x[SIZE];
  for (int k = 0; k < SIZE; ++k) x[k] = 0.25 * k - 0.5;
  int32_t status = value_and_slope(x, SIZE, 0.5, &out[0], &out[1]);
  if (status) return status;
  return ordered_sum(x, SIZE, &out[1 + SIZE]);
}

static void *repeat(void *failed) {
  double out[2 + SIZE];
  for (int k = 0; k < CALLS; ++k)
    if (compute(out) || memcmp(out, expected, sizeof out)) *(int *)failed = 1;
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int failed[THREADS] = {0};
  int status = compute(expected);
  if (status) return fprintf(stderr, "%s\n", model_message(status)), 1;
  for (int k = 0; k < THREADS; ++k) pthread_create(&threads[k], NULL, repeat, &failed[k]);
  for (int k = 0; k < THREADS; ++k) pthread_join(threads[k], NULL);
  for (int k = 0; k < THREADS; ++k)
    if (failed[k]) return 2;
  double x = 1.0, out[2];
  if (value_and_slope(&x, 1, 0.5, &out[0], &out[1]) != 1 || !strlen(model_message(1))) return 3;
  for (int k = 0; k < 2 + SIZE; ++k) printf("%.17g\n", expected[k]);
  return 0;
}
