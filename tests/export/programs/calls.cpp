// Calls exported functions from C++.
#include "model.h"

#include <cstdio>
#include <vector>

int main() {
  std::vector<double> x(6), slope(6);
  for (int k = 0; k < 6; ++k) x[k] = 0.25 * k - 0.5;
  double value, sum;
  if (value_and_slope(x.data(), 6, 0.5, &value, slope.data())) return 1;
  if (ordered_sum(x.data(), 6, &sum)) return 2;
  std::printf("%.17g\n", value);
  for (double s : slope) std::printf("%.17g\n", s);
  std::printf("%.17g\n", sum);
}
