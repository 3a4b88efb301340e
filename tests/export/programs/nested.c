/* Calls a function of nested arguments by its structures; compiles as C and as C++. */
#include "nested.h"

#include <stdio.h>

int main(void) {
  const double w[4] = {1.0, 2.0, 3.0, 4.0}, b[2] = {0.5, -0.5}, x[2] = {1.0, -1.0};
  double dw[4], db[2];
  layer_p p;
  layer_result result;
  p.w = w;
  p.w_length0 = 2;
  p.w_length1 = 2;
  p.scale = 2.0;
  p.b_0 = b;
  result.slope_w = dw;
  result.slope_b_0 = db;
  int32_t status = layer_nested(&p, x, &result);
  if (status) return fprintf(stderr, "%s\n", nested_message(status)), 1;
  printf("%.17g %.17g\n", result.value, result.slope_scale);
  for (int k = 0; k < 4; ++k) printf("%.17g\n", dw[k]);
  for (int k = 0; k < 2; ++k) printf("%.17g\n", db[k]);
  return 0;
}
