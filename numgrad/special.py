"""Special functions on Tensors, with derivatives, under their names in ``scipy.special``.

>>> import numgrad as ng
>>> ng.grad(ng.special.jv)(0.5, 1.0).round(12)
np.float64(-0.408103781378)

``scipy.special.jv(1.5, tensor)`` calls ``ng.special.jv``, as it is with every ufunc that is listed
here.
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.operations.arithmetic": "round=rint",
        "numgrad.operations.elementary": "sinc",
        "numgrad.operations.error_gamma_logistic": "digamma psi=digamma erf erfc erfinv gamma "
        "gammaln log_expit=log_sigmoid logit ndtr polygamma expit=sigmoid softplus",
        "numgrad.operations.exponential": "cbrt exp2 expm1 log1p",
        "numgrad.operations.special_functions.bessel": "bei beip ber berp besselpoly i0 i0e i1 "
        "i1e it2struve0 itmodstruve0 itstruve0 iv ive j0 j1 jn=jv jv jve k0 k0e k1 k1e kei keip "
        "ker kerp kn kv kve modstruve spherical_in spherical_jn spherical_kn spherical_yn struve "
        "y0 y1 yn yv yve",
        "numgrad.operations.special_functions.complex_valued": "h1vp h2vp hankel1 hankel1e "
        "hankel2 hankel2e ivp jvp kelvin kvp lambertw modfresnelm modfresnelp voigt_profile wofz "
        "yvp",
        "numgrad.operations.special_functions.distributions": "bdtr bdtrc chdtr chdtrc chdtri "
        "dawsn erfcinv erfcx erfi fdtr fdtrc fdtri gdtr gdtrc log_ndtr nbdtr nbdtrc ndtri "
        "ndtri_exp owens_t pdtr pdtrc stdtr stdtrit",
        "numgrad.operations.special_functions.elliptic": "agm ellipe ellipeinc ellipk ellipkinc "
        "ellipkm1 elliprc elliprd elliprf elliprg elliprj",
        "numgrad.operations.special_functions.gamma": "beta betainc betaincc betainccinv "
        "betaincinv betaln binom comb factorial gammainc gammaincc gammainccinv gammaincinv "
        "gammasgn loggamma multigammaln perm poch rgamma zeta",
        "numgrad.operations.special_functions.hypergeometric": "assoc_laguerre eval_chebyc "
        "eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite "
        "eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu "
        "eval_sh_jacobi eval_sh_legendre exp1 expi expn exprel hyp0f1 hyp1f1 hyp2f1 hyperu lpmv "
        "spence wrightomega",
        "numgrad.operations.special_functions.integrals": "airy airye ellipj fresnel it2i0k0 "
        "it2j0y0 itairy iti0k0 itj0y0 shichi sici",
        "numgrad.operations.special_functions.inverse_parameters": "bdtri bdtrik bdtrin btdtria "
        "btdtrib chdtriv fdtridfd gdtria gdtrib gdtrix nbdtri nbdtrik nbdtrin nrdtrimn nrdtrisd "
        "pdtri pdtrik stdtridf",
        "numgrad.operations.special_functions.noncentral": "chndtr chndtridf chndtrinc chndtrix "
        "kolmogi kolmogorov log_wright_bessel ncfdtr ncfdtri tklmbda wright_bessel",
        "numgrad.operations.special_functions.scipy_elementary": "boxcox boxcox1p cosdg cosm1 "
        "cotdg diric entr exp10 huber inv_boxcox inv_boxcox1p kl_div log_softmax logsumexp powm1 "
        "pseudo_huber radian rel_entr sindg softmax tandg xlog1py xlogy",
        "numgrad.operations.special_functions.wave_functions": "mathieu_a mathieu_b mathieu_cem "
        "mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2 mathieu_sem obl_ang1 "
        "obl_ang1_cv obl_cv obl_rad1 obl_rad1_cv pbdv pbvv pbwa pro_ang1 pro_ang1_cv pro_cv "
        "pro_rad1 pro_rad1_cv",
    },
    {
        "zetac": "zeta(x) - 1",
        "sph_harm_y": "lpmv",
        "factorialk": "factorial",
        "factorial2": "factorial",
    },
)
