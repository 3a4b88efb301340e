"""Values and gradients by formulas derived and loops written by hand: what a compiler can reach."""
