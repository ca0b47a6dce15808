"""Priors: a named distribution per parameter, stated in numbers people can think in."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import erf, ndtr, ndtri

from ..data.randomness import Key
from ..errors import InputError, InputTypeError, Remedy, Setting, SettingError
from ..incidence import Array, namespace
from ..validate import check_choice, check_number

if TYPE_CHECKING:
    import numpyro.distributions as dist

# Networks compute in single precision, from 1e-38 to 3e38: this leaves room for the tails of a
# prior and for products with distances and duals.
TINY, HUGE = 1e-20, 1e20
# Normal priors are for coefficients of logits, and a logit of a thousand is certain already.
LARGEST = 1e6
# A relative spread below this is hardly more than the rounding of single precision, 1e-7.
NARROW = 1e-6
# With this log_sd, the paper's widest, 95 % of a lognormal spans 17 orders of magnitude.
WIDE = 10.0


@dataclass(frozen=True)
class Marginal(abc.ABC):
    """The prior of one parameter; abstract. See `lognormal`, `loguniform`, `normal`."""

    @property
    @abc.abstractmethod
    def distribution(self) -> dist.Distribution:
        """The distribution as NumPyro has it."""

    @property
    @abc.abstractmethod
    def positive(self) -> bool:
        """Whether all values are positive; their natural coordinate is then the logarithm."""

    @abc.abstractmethod
    def from_z(self, z: Array) -> Array:
        """Map a standard normal z to the value with the same quantile.

        In the coordinate z every prior is a standard normal: z = 0 is the median, and |z| > 3 is
        improbable. Takes NumPy or JAX arrays.
        """

    @abc.abstractmethod
    def from_z_derivatives(self, z: Array) -> tuple[Array, Array]:
        """Return the first and the second derivative of `from_z`."""

    @abc.abstractmethod
    def to_z(self, value: Array) -> Array:
        """Invert `from_z`: the number of prior standard deviations from the median."""

    @property
    def fixed(self) -> bool:
        """Whether the value is known, so that there is nothing to infer."""
        return False

    def sample(self, key: Key, shape: tuple[int, ...]) -> jax.Array:
        """Draw independent values."""
        return self.distribution.sample(key, shape)

    def quantile(self, q: ArrayLike) -> Array:
        """Return the value below which a share `q` of the distribution lies."""
        return self.from_z(ndtri(q))

    @property
    def median(self) -> float:
        return float(self.from_z(0.0))


@dataclass(frozen=True)
class LogNormal(Marginal):
    """A lognormal with a `median`, and `log_sd`, the standard deviation of the logarithm."""

    median: float = 1.0
    log_sd: float = 1.0

    positive = True

    @property
    def distribution(self) -> dist.Distribution:
        import numpyro.distributions as dist

        return dist.LogNormal(np.log(self.median), self.log_sd)

    def from_z(self, z: Array) -> Array:
        return self.median * namespace(z).exp(self.log_sd * namespace(z).asarray(z))

    def from_z_derivatives(self, z: Array) -> tuple[Array, Array]:
        first = self.log_sd * self.from_z(z)
        return first, self.log_sd * first

    def to_z(self, value: Array) -> Array:
        return np.log(np.asarray(value) / self.median) / self.log_sd


@dataclass(frozen=True)
class LogUniform(Marginal):
    """A distribution between `low` and `high` whose logarithm is uniform."""

    low: float = 1e-6
    high: float = 1e6

    positive = True

    @property
    def distribution(self) -> dist.Distribution:
        import numpyro.distributions as dist

        return dist.LogUniform(self.low, self.high)

    def from_z(self, z: Array) -> Array:
        below = jax.scipy.special.ndtr(z) if isinstance(z, jax.Array) else ndtr(z)
        return self.low * (self.high / self.low) ** below

    def from_z_derivatives(self, z: Array) -> tuple[Array, Array]:
        value = self.from_z(z)
        rate = np.log(self.high / self.low) * np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi)
        return value * rate, value * rate * (rate - z)

    def to_z(self, value: Array) -> Array:
        value, width = np.asarray(value), np.log(self.high / self.low)
        below, above = np.log(value / self.low) / width, np.log(self.high / value) / width
        return np.where(below < 0.5, ndtri(below), -ndtri(above))  # digits at both ends


@dataclass(frozen=True)
class Normal(Marginal):
    """A normal distribution with a `mean` and a standard deviation `sd`."""

    mean: float = 0.0
    sd: float = 1.0

    positive = False

    @property
    def distribution(self) -> dist.Distribution:
        import numpyro.distributions as dist

        return dist.Normal(self.mean, self.sd)

    def from_z(self, z: Array) -> Array:
        return self.mean + self.sd * namespace(z).asarray(z)

    def from_z_derivatives(self, z: Array) -> tuple[Array, Array]:
        return np.full_like(z, self.sd, float), np.zeros_like(z, float)

    def to_z(self, value: Array) -> Array:
        return (np.asarray(value) - self.mean) / self.sd


@dataclass(frozen=True)
class ScalePrior(Marginal):
    """A prior of a scale tau that n coefficients w_j ~ Normal(0, tau) share; abstract.

    Engines that learn scales need two things more of it than of other marginals.
    """

    scale: float = 1.0

    positive = True

    @abc.abstractmethod
    def log_kernel(self, tau: Array) -> Array:
        """Return the log density of tau up to a constant."""

    @abc.abstractmethod
    def typical(self, squares: Array, counts: Array) -> Array:
        """Return the tau at which log tau has its mode, given the sums of squares of coefficients.

        The density of log tau is tau^(1 - n) exp(-S/(2 tau^2)) p(tau).
        """


@dataclass(frozen=True)
class HalfNormal(ScalePrior):
    """The absolute value of a normal with mean 0 and standard deviation `scale`."""

    def log_kernel(self, tau: Array) -> Array:
        return -((tau / self.scale) ** 2) / 2

    def typical(self, squares: Array, counts: Array) -> Array:
        s2, linear = self.scale**2, counts - 1
        return np.sqrt(s2 / 2 * (np.sqrt(linear**2 + 4 * squares / s2) - linear))

    @property
    def distribution(self) -> dist.Distribution:
        import numpyro.distributions as dist

        return dist.HalfNormal(self.scale)

    def from_z(self, z: Array) -> Array:
        xp = namespace(z)
        special = jax.scipy.special if xp is jnp else scipy.special
        below, quantile, z = special.ndtr, special.ndtri, xp.asarray(z)
        # Near zero the distribution function is straight, and the quantile would lose its digits.
        low = z < -4
        small = np.sqrt(np.pi / 2) * below(xp.where(low, z, -4.0))
        return self.scale * xp.where(low, small, -quantile(below(-xp.where(low, -4.0, z)) / 2))

    def from_z_derivatives(self, z: Array) -> tuple[Array, Array]:
        z, v = np.asarray(z, float), np.asarray(self.from_z(np.asarray(z, float))) / self.scale
        first = np.exp((v**2 - z**2) / 2) / 2
        return self.scale * first, self.scale * first * (v * first - z)

    def to_z(self, value: Array) -> Array:
        v = np.asarray(value, float) / self.scale
        # 2 ndtr(v) - 1 below, 2 ndtr(-v) above: digits at both ends
        return np.where(v < 0.67, ndtri(erf(v / np.sqrt(2))), -ndtri(2 * ndtr(-v)))


@dataclass(frozen=True)
class HalfT(ScalePrior):
    """The absolute value of Student's t with two degrees of freedom, times `scale`.

    Its density falls as the cube: values many times the scale are possible, where those of a
    half-normal are not.
    """

    def log_kernel(self, tau: Array) -> Array:
        return -1.5 * np.log1p((tau / self.scale) ** 2 / 2)

    def typical(self, squares: Array, counts: Array) -> Array:
        s2 = self.scale**2
        linear = squares - 2 * s2 * (counts - 1)
        root = np.sqrt(linear**2 + 8 * s2 * squares * (counts + 2))
        # Of two forms that are equal, the one without cancellation.
        with np.errstate(divide="ignore", invalid="ignore"):
            other = 4 * s2 * squares / (root - linear)
        return np.sqrt(np.where(linear > 0, (linear + root) / (2 * (counts + 2)), other))

    @property
    def distribution(self) -> dist.Distribution:
        import numpyro.distributions as dist

        return dist.FoldedDistribution(dist.StudentT(2.0, 0.0, self.scale))

    def from_z(self, z: Array) -> Array:
        special = jax.scipy.special if namespace(z) is jnp else scipy.special
        z = namespace(z).asarray(z)
        below, above = special.ndtr(z), special.ndtr(-z)
        return self.scale * np.sqrt(2) * below / namespace(z).sqrt(above * (1 + below))

    def from_z_derivatives(self, z: Array) -> tuple[Array, Array]:
        z = np.asarray(z, float)
        # v = sqrt(2) p / sqrt(1 - p^2) has dv/dp = sqrt(2) (1 - p^2)^(-3/2), and p is ndtr(z).
        below, rest = ndtr(z), ndtr(-z) * (1 + ndtr(z))
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        first = self.scale * np.sqrt(2) * density * rest**-1.5
        return first, first * (3 * below * density / rest - z)

    def to_z(self, value: Array) -> Array:
        v = np.asarray(value, float) / self.scale
        root = np.sqrt(2 + v**2)
        below, above = v / root, 2 / (root * (root + v))  # p and 1 - p: digits at both ends
        return np.where(below < 0.5, ndtri(below), -ndtri(above))


@dataclass(frozen=True)
class Fixed(Marginal):
    """A parameter known to be `value`: a number, or a tuple of numbers for a vector.

    Engines do not infer it; it has no coordinate z.
    """

    value: float | tuple[float, ...] = 0.0

    positive = False

    @property
    def fixed(self) -> bool:
        return True

    @property
    def distribution(self) -> dist.Distribution:
        import numpyro.distributions as dist

        return dist.Delta(jnp.asarray(self.value), event_dim=np.ndim(self.value))

    @property
    def median(self) -> Any:
        return self.value if isinstance(self.value, float) else np.array(self.value)

    def sample(self, key: Key, shape: tuple[int, ...]) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(self.value), shape)

    def from_z(self, z: Array) -> Array:
        value = namespace(z).asarray(self.value)
        return namespace(z).broadcast_to(value, np.shape(z)) if value.ndim == 0 else value

    def from_z_derivatives(self, z: Array) -> tuple[Array, Array]:
        return np.zeros_like(z, float), np.zeros_like(z, float)

    def to_z(self, value: Array) -> Array:
        return np.zeros(np.shape(value))


def fixed(value: ArrayLike) -> Fixed:
    """Make a prior that fixes the parameter at `value`, an array for a vector.

    A fixed parameter is not inferred. A network with theta fixed, and a readout whose parameters
    are inferred, is *partially stochastic*.

    Examples
    --------
    >>> from edgebelief.infer import Prior, fixed
    >>> Prior.named("altered").replace(theta=fixed(0.16))["theta"].median
    0.16
    """
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":  # no text, which NumPy would take for a number
        raise InputTypeError(f"a fixed value must be a number, or some in a row; got {value!r}.")
    array = array.astype(float)
    if array.ndim > 1 or array.size == 0 or not np.isfinite(array).all():
        raise InputError(f"a fixed value must be a finite number, or some in a row; got {value!r}.")
    if not (np.abs(array) <= HUGE).all():
        raise _out_of_range("value", np.abs(array).max(), f"at most {HUGE:g} in size")
    return Fixed(tuple(array.tolist()) if array.ndim else float(array))


def half_normal(scale: float) -> HalfNormal:
    """Make a half-normal prior: values between 0 and about twice `scale`, smaller ones preferred.

    Examples
    --------
    >>> from edgebelief.infer import half_normal
    >>> round(half_normal(1.0).median, 4)
    0.6745
    """
    return HalfNormal(_in_range(scale, "scale"))


def half_t(scale: float) -> HalfT:
    """Make a prior for scales of which few are large: half of Student's t, two degrees of freedom.

    Examples
    --------
    >>> from edgebelief.infer import half_t
    >>> half_t(1.0).quantile([0.5, 0.99]).round(3)
    array([0.816, 9.925])
    """
    return HalfT(_in_range(scale, "scale"))


def lognormal(median: float, log_sd: float) -> LogNormal:
    """Make a lognormal prior: two thirds of it within a factor exp(`log_sd`) of `median`.

    Examples
    --------
    >>> from edgebelief.infer import lognormal
    >>> lognormal(median=100, log_sd=2**0.5).quantile([0.025, 0.975]).round(1)
    array([   6.3, 1598.8])
    """
    median, log_sd = _in_range(median, "median"), _positive(log_sd, "log_sd")
    if log_sd > WIDE:
        problem = f"must be at most {WIDE:g}; got {log_sd:g}"
        remedy = Remedy("For all orders of magnitude alike, use {}", _call("loguniform(low, high)"))
        raise SettingError(problem, argument="log_sd", remedy=remedy)
    _check_width(log_sd, median, "log_sd", log_sd)
    return LogNormal(median, log_sd)


def loguniform(low: float, high: float) -> LogUniform:
    """Make a prior to which all orders of magnitude between `low` and `high` are alike.

    Examples
    --------
    >>> from edgebelief.infer import loguniform
    >>> loguniform(1e-6, 1e6).median
    1.0
    """
    low, high = _in_range(low, "low"), _in_range(high, "high")
    if not low < high:
        raise SettingError(f"must be below high; got {low:g} and {high:g}.", argument="low")
    _check_width(np.log(high / low), low, "high", high)
    return LogUniform(low, high)


def normal(mean: float, sd: float) -> Normal:
    """Make a normal prior with this mean and standard deviation.

    Examples
    --------
    >>> from edgebelief.infer import normal
    >>> normal(0, 1000).median
    0.0
    """
    mean, sd = check_number(mean, "mean"), _in_range(sd, "sd", LARGEST)
    if not abs(mean) <= LARGEST:
        raise _out_of_range("mean", mean, f"between {-LARGEST:g} and {LARGEST:g}")
    if mean != 0:
        _check_width(sd / abs(mean), mean, "sd", sd)
    return Normal(mean, sd)


class Prior(Mapping[str, Marginal]):
    """Independent marginals of the parameters, by name.

    Parameters
    ----------
    **marginals : Marginal
        By the names of the parameters.

    Examples
    --------
    >>> from edgebelief.infer import Prior, lognormal
    >>> prior = Prior.named("altered").replace(b=lognormal(median=2, log_sd=0.5))
    >>> prior
    Prior(theta=LogNormal(median=0.31622776601683794, log_sd=2.0),
          delta=LogNormal(median=100.0, log_sd=1.4142135623730951),
          b=LogNormal(median=2.0, log_sd=0.5))
    """

    def __init__(self, **marginals: Marginal):
        for name, marginal in marginals.items():
            if not isinstance(marginal, Marginal):
                raise InputTypeError(
                    f"the prior of {name} must be made by lognormal, loguniform or normal; "
                    f"got {marginal!r}."
                )
        self._marginals = dict(marginals)

    @classmethod
    def named(cls, name: str, of: str = "dpg") -> Prior:
        """Return a prior of the paper: "original", "altered" (after prior checks) or "flat".

        Parameters
        ----------
        name : {"original", "altered", "flat"}
        of : {"dpg", "pds", "mimo"}
            The kind of network (`Network.kind`). What the paper gives to `PDS`, and to `MIMO` with
            its heads, is "altered" here; their "original" is the same.
        """
        if name not in _NAMED["dpg"]:
            raise SettingError(f"no prior is called {name!r}; there are {sorted(_NAMED['dpg'])}.")
        check_choice(of, "of", sorted(_NAMED))
        return cls(**_NAMED[of][name])

    def __getitem__(self, name: str) -> Marginal:
        return self._marginals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._marginals)

    def __len__(self) -> int:
        return len(self._marginals)

    def __hash__(self) -> int:
        return hash(frozenset(self._marginals.items()))

    def __repr__(self) -> str:
        return f"Prior({', '.join(f'{name}={marginal}' for name, marginal in self.items())})"

    def replace(self, **marginals: Marginal) -> Prior:
        """Return a prior with some marginals exchanged or added."""
        return Prior(**{**self._marginals, **marginals})

    def medians(self) -> dict[str, float]:
        return {name: marginal.median for name, marginal in self.items()}

    def sample(
        self, key: Key, n: int, sizes: Mapping[str, int] | None = None
    ) -> dict[str, Float[jax.Array, "draws ..."]]:
        """Draw every parameter `n` times; `sizes` has the length of those that are vectors."""
        keys = jax.random.split(key, len(self))
        shapes = {name: (size,) for name, size in (sizes or {}).items()}
        return {
            name: marginal.sample(k, (n, *shapes.get(name, ())))
            for k, (name, marginal) in zip(keys, self.items(), strict=True)
        }

    def log_density(self, params: Mapping[str, Any]) -> Float[jax.Array, ""]:
        """Return log p(params), each parameter in its own units (no Jacobian)."""
        free = [name for name in self if not self[name].fixed]
        return sum(
            (jnp.asarray(self[name].distribution.log_prob(params[name])).sum() for name in free),
            start=jnp.zeros(()),
        )


def _positive(value: float, what: str) -> float:
    number = check_number(value, what)
    if not (np.isfinite(number) and number > 0):
        raise SettingError(f"must be positive and finite; got {number:g}.", argument=what)
    return number


def _in_range(value: float, what: str, largest: float = HUGE) -> float:
    number = _positive(value, what)
    if not TINY <= number <= largest:
        raise _out_of_range(what, number, f"between {TINY:g} and {largest:g}")
    return number


def _out_of_range(what: str, number: float, wanted: str) -> SettingError:
    return SettingError(
        f"must be {wanted}; got {number:g}: networks compute in single precision",
        argument=what,
        remedy="State the prior for distances of another unit",
    )


def _check_width(relative: float, value: float, what: str, number: float) -> None:
    """Refuse a prior so narrow that single precision has hardly two values in it."""
    if relative < NARROW:
        problem = (
            f"leaves a relative spread of {relative:.1g}; got {number:g}, and single precision "
            f"tells values apart from {NARROW:g} on"
        )
        known = Remedy("For a known value use {}", _call(f"fixed({value:g})"))
        raise SettingError(problem, argument=what, remedy=known)


def _call(text: str) -> Setting:
    """Name a function of this module: in prior files it is the kind of the same name."""
    return Setting(text.partition("(")[0], python=text)


# Priors of the parameters that the paper does not have, where a prior does not name them.
BEYOND: dict[str, Marginal] = {
    "slack": lognormal(1.0, 2.0),
    "curves": normal(0.0, 1.0),
    # All terms of an additive readout together have this standard deviation over pairs, give or
    # take, before labels are seen: odds differ by a factor of three (see `Additive.unit`).
    "scales": half_normal(1.2),
    # Of weights in any unit; proportional to the network's, give or take; within a factor 2 or so.
    "level": normal(0.0, 10.0),
    "slope": normal(1.0, 1.0),
    "weight_sd": lognormal(0.5, 1.0),
}

# Medians where the paper prints means of logs: see docs/paper-notes.md.
_THETA, _ALTERED_THETA = lognormal(1.0, 2.0), lognormal(10**-0.5, 2.0)
_POSITIVE = {"delta": lognormal(100.0, np.sqrt(2)), "b": lognormal(1.0, np.sqrt(2))}
_WIDE = {"delta": normal(0.0, 100.0), "b": normal(0.0, 10.0)}
_ANY, _ANY_SCALE = normal(0.0, 1e3), loguniform(1e-6, 1e6)
_FLAT = {"theta": _ANY_SCALE, "delta": _ANY, "b": _ANY}
_PDS = {"alpha": lognormal(1.0, 10.0), "beta": lognormal(1.0, 10.0), "b": _ANY}
_FLAT_PDS = {"alpha": _ANY_SCALE, "beta": _ANY_SCALE, "b": _ANY}
# By the kind of the network, then by name.
_NAMED: dict[str, dict[str, dict[str, Marginal]]] = {
    "dpg": {
        "original": {"theta": _THETA, **_POSITIVE},
        "altered": {"theta": _ALTERED_THETA, **_POSITIVE},
        "flat": _FLAT,
    },
    "pds": {"original": _PDS, "altered": _PDS, "flat": _FLAT_PDS},
    "mimo": {
        "original": {"theta": _THETA, **_WIDE},
        "altered": {"theta": _ALTERED_THETA, **_WIDE},
        "flat": _FLAT,
    },
}
