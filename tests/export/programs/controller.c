/* Balances a pendulum by model-predictive control at 1 kHz.
 *
 * Each millisecond twelve steps of Barzilai and Borwein (1988) lower the cost of the next 20
 * torques, by the exported gradient; the first of them is applied. */
#define _POSIX_C_SOURCE 199309L
#include "pendulum.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HORIZON = 20, ITERATIONS = 12, STEPS = 3000 };

static int plan(double *torques, const double *state) {
  double cost, slope[HORIZON], before[HORIZON], last[HORIZON], rate = 1e-2;
  for (int i = 0; i < ITERATIONS; ++i) {
    int status = cost_and_slope(torques, state, &cost, slope);
    if (status) return status;
    if (i) {
      double length = 0.0, turn = 0.0;
      for (int k = 0; k < HORIZON; ++k) {
        double moved = torques[k] - before[k];
        length += moved * moved;
        turn += moved * (slope[k] - last[k]);
      }
      if (turn > 1e-12 * length) rate = length / turn;
    }
    memcpy(before, torques, sizeof before);
    memcpy(last, slope, sizeof last);
    for (int k = 0; k < HORIZON; ++k) {
      double torque = torques[k] - rate * slope[k];
      torques[k] = torque > 20.0 ? 20.0 : torque < -20.0 ? -20.0 : torque;
    }
  }
  return 0;
}

/* Processor time: on a busy machine others take their share of that of clocks. */
static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

int main(void) {
  double state[2] = {0.6, 0.0}, torques[HORIZON] = {0.0}, total = 0.0, longest = 0.0;
  for (int step = 0; step < STEPS; ++step) {
    double start = microseconds();
    int status = plan(torques, state);
    double taken = microseconds() - start;
    if (status) return fprintf(stderr, "%s\n", pendulum_message(status)), 1;
    total += taken;
    longest = taken > longest ? taken : longest;
    state[1] += 1e-3 * (9.81 * sin(state[0]) + torques[0]);
    state[0] += 1e-3 * state[1];
  }
  printf("%.6f %.6f\n", state[0], state[1]);
  fprintf(stderr, "%.1f us a step on average, %.1f at most, of 1000\n", total / STEPS, longest);
  return 0;
}
