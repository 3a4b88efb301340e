"""Sample calls of operations: special functions."""

from typing import Any

import numpy as np

from numgrad.operations.special_functions.complex_valued import voigt_profile
from numgrad.operations.special_functions.distributions import nbdtr, nbdtrc
from numgrad.operations.special_functions.gamma import riemann_zeta, riemann_zeta_slope
from numgrad.operations.special_functions.hypergeometric import lpmv
from numgrad.operations.special_functions.inverse_parameters import (
    bdtri,
    bdtrik,
    nbdtri,
    nbdtrik,
    pdtrik,
    stdtridf,
)
from numgrad.operations.special_functions.noncentral import chndtridf, chndtrinc
from numgrad.operations.special_functions.normal_regions import _options, normal_probability
from numgrad.operations.special_functions.wave_functions import (
    mathieu_cem,
    mathieu_modcem1,
    mathieu_modcem2,
    mathieu_modsem1,
    mathieu_modsem2,
    mathieu_sem,
    obl_ang1,
    obl_ang1_cv,
    obl_cv,
    obl_rad1,
    obl_rad1_cv,
    pro_ang1,
    pro_ang1_cv,
    pro_cv,
    pro_rad1,
    pro_rad1_cv,
)


def _correlated(m: Any) -> Any:
    return np.eye(2) + 0.2 * (m + m.T) * (1 - np.eye(2))


CALLS = {
    # numgrad.operations.special_functions.complex_valued
    voigt_profile: [(((2, 3), (3,), (3,)), lambda x, sigma, gamma: voigt_profile(x, sigma, gamma))],
    # numgrad.operations.special_functions.distributions
    nbdtr: [(((3,),), lambda p: nbdtr(1, 3, p))],
    nbdtrc: [(((3,),), lambda p: nbdtrc(1, 3, p))],
    # numgrad.operations.special_functions.inverse_parameters
    stdtridf: [(((3,), (3,)), lambda p, t: stdtridf(p, t + 0.05))],
    bdtri: [(((3,),), lambda p: bdtri(1, 3, p))],
    nbdtri: [(((3,),), lambda p: nbdtri(1, 3, p))],
    pdtrik: [(((3,), (3,)), lambda p, m: pdtrik(p, m + 2))],
    bdtrik: [(((3,), (3,), (3,)), lambda p, n, x: bdtrik(p, n + 5, x))],
    nbdtrik: [(((3,), (3,), (3,)), lambda p, n, x: nbdtrik(p, n + 3, x))],
    # numgrad.operations.special_functions.gamma
    riemann_zeta: [(((3,),), lambda s: riemann_zeta(s + 2))],
    riemann_zeta_slope: [(((3,),), lambda s: riemann_zeta_slope(s + 2, n=1))],
    # numgrad.operations.special_functions.noncentral
    chndtrinc: [(((3,), (3,), (3,)), lambda x, df, p: chndtrinc(x + 6, df, 0.1 * p))],
    chndtridf: [(((3,), (3,), (3,)), lambda x, p, nc: chndtridf(x + 6, 0.2 * p, nc))],
    # numgrad.operations.special_functions.normal_regions
    normal_probability: [
        (
            (shape, (2, 2)),
            lambda x, m: normal_probability(x, _correlated(m), **_options(0, None, 1e-5, 1e-5)),
        )
        for shape in ((3, 1, 2), (2, 2))
    ],
    # numgrad.operations.special_functions.hypergeometric
    lpmv: [(((3,),), lambda x: lpmv(1.0, 2.5, x))],
}

CALLS |= {
    op: [(((3,),), lambda x, op=op: op(1.0, 0.5, x))]
    for op in (
        mathieu_cem, mathieu_sem, mathieu_modcem1, mathieu_modcem2, mathieu_modsem1, mathieu_modsem2
    )
}  # fmt: skip
CALLS |= {
    op: [(((3,),), lambda x, op=op: op(1.0, 2.0, 1.0, x))]
    for op in (pro_ang1, pro_rad1, obl_ang1, obl_rad1)
}
CALLS |= {
    op: [(((3,),), lambda x, op=op, value=value: op(1.0, 2.0, 1.0, value(1.0, 2.0, 1.0), x))]
    for op, value in (
        (pro_ang1_cv, pro_cv),
        (pro_rad1_cv, pro_cv),
        (obl_ang1_cv, obl_cv),
        (obl_rad1_cv, obl_cv),
    )
}
