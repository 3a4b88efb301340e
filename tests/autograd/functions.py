"""Functions that the tests of ``autograd.Function`` share."""


def base(lib):
    """The class to derive from."""
    return lib.autograd.Function


def leaf(lib, *values):
    """A vector that requires grad."""
    return lib.tensor(list(values or (1.0, 2.0)), requires_grad=True)


def scaling(lib, forward=None, backward=None, **members):
    """A Function that doubles, unless other code is given."""

    def doubled(ctx, x):
        return x * 2

    def gradient(ctx, g):
        return g * 2

    members["forward"] = staticmethod(forward or doubled)
    members["backward"] = staticmethod(backward or gradient)
    return type("F", (base(lib),), members)


def powers(lib):
    """A Function with two inputs, one output and a backward that can be differentiated."""

    class Power(base(lib)):
        @staticmethod
        def forward(ctx, x, exponent):
            y = x**exponent
            ctx.save_for_backward(x, y)
            ctx.exponent = exponent
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * ctx.exponent * y / x, None

    return Power
