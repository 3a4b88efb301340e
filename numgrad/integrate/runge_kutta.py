"""Runge-Kutta methods as tables of numbers."""

from __future__ import annotations

from dataclasses import dataclass

Weights = tuple[float, ...]


@dataclass(frozen=True)
class Tableau:
    """An explicit method whose last stage is the slope at the end of the step.

    Attributes
    ----------
    nodes
        Where in the step slopes are taken, after the one at its start.
    rows
        For each of these, the weights of the slopes before it; the last row makes the new state.
    errors
        Weights of all slopes in the estimate of the error, which is that of a step of order four.
    dense
        For each slope, what its weight is within the step: factors of the first four powers.
    """

    nodes: Weights
    rows: tuple[Weights, ...]
    errors: Weights
    dense: tuple[Weights, ...]


NONE = (0.0, 0.0, 0.0, 0.0)

# J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae", 1980; within a step
# L. F. Shampine, "Some practical Runge-Kutta formulas", 1986.
DOPRI5 = Tableau(
    nodes=(1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    rows=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    errors=(-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40),
    dense=(
        (
            1.0,
            -8048581381 / 2820520608,
            8663915743 / 2820520608,
            -12715105075 / 11282082432,
        ),
        NONE,
        (
            0.0,
            131558114200 / 32700410799,
            -68118460800 / 10900136933,
            87487479700 / 32700410799,
        ),
        (
            0.0,
            -1754552775 / 470086768,
            14199869525 / 1410260304,
            -10690763975 / 1880347072,
        ),
        (
            0.0,
            127303824393 / 49829197408,
            -318862633887 / 49829197408,
            701980252875 / 199316789632,
        ),
        (
            0.0,
            -282668133 / 205662961,
            2019193451 / 616988883,
            -1453857185 / 822651844,
        ),
        (
            0.0,
            40617522 / 29380423,
            -110615467 / 29380423,
            69997945 / 29380423,
        ),
    ),
)

# Ch. Tsitouras, "Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying
# assumption", 2011.
TSIT5 = Tableau(
    nodes=(0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0),
    rows=(
        (0.161,),
        (-0.008480655492356989, 0.335480655492357),
        (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
        (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
        (
            5.86145544294642,
            -12.92096931784711,
            8.159367898576159,
            -0.071584973281401,
            -0.028269050394068383,
        ),
        (
            0.09646076681806523,
            0.01,
            0.4798896504144996,
            1.379008574103742,
            -3.290069515436081,
            2.324710524099774,
        ),
    ),
    errors=(
        -0.00178001105222577714,
        -0.0008164344596567469,
        0.007880878010261995,
        -0.1447110071732629,
        0.5823571654525552,
        -0.45808210592918697,
        1 / 66,
    ),
    dense=(
        (1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216),
        (0.0, 0.1317, -0.2234, 0.1017),
        (0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253),
        (0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902),
        (0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928),
        (0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661),
        (0.0, 1.5, -4.0, 2.5),
    ),
)

TABLEAUS = {"dopri5": DOPRI5, "tsit5": TSIT5}
