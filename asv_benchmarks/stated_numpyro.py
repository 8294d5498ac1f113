"""The models of `stated_models` in NumPyro: each function returns a model, and what is computed of
its draws, a function of one draw and a key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.experimental.ode import odeint
from jax.scipy.special import logsumexp
from numpyro.infer import MCMC, NUTS, init_to_uniform, log_likelihood
from workloads.stated_data import absorbed, slope

numpyro.enable_x64()


def hierarchical_logit(X, group, groups, y):
    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 2).expand([3]))
        tau = numpyro.sample("tau", dist.HalfNormal(1).expand([3]))
        L = numpyro.sample("L", dist.LKJCholesky(3, 2))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([groups, 3]))
        beta = numpyro.deterministic("beta", mu + z @ (tau[:, None] * L).T)
        logits = jnp.sum(X * beta[group], axis=1)
        numpyro.sample("y", dist.Bernoulli(logits=logits), obs=y)

    return model, None


def censored_survival(X, end, y):
    def model():
        shape = numpyro.sample("shape", dist.Gamma(2, 1))
        alpha = numpyro.sample("alpha", dist.Normal(0, 2))
        beta = numpyro.sample("beta", dist.Normal(0, 1).expand([2]))
        scale = jnp.exp(alpha + X @ beta)
        lifetime = dist.Weibull(scale, shape)
        terms = jnp.where(y < end, lifetime.log_prob(y), -((y / scale) ** shape))
        numpyro.factor("y", terms)

    return model, None


def gaussian_process(x, new, y):
    def kernel(a, b, scale, length):
        return scale**2 * jnp.exp(-0.5 * ((a[:, None] - b) / length) ** 2)

    def covariance(scale, length, noise):
        return kernel(x, x, scale, length) + noise**2 * jnp.eye(x.size)

    def model():
        scale = numpyro.sample("scale", dist.HalfNormal(1))
        length = numpyro.sample("length", dist.InverseGamma(5, 5))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        K = covariance(scale, length, noise)
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(x.size), K), obs=y)

    def prediction(key, scale, length, noise):
        cross = kernel(x, new, scale, length)
        weights = jnp.linalg.solve(covariance(scale, length, noise), cross)
        rest = kernel(new, new, scale, length) - cross.T @ weights
        jitter = 1e-9 * jnp.eye(new.size)
        return dist.MultivariateNormal(weights.T @ y, rest + jitter).sample(key)

    return model, prediction


def lotka_volterra(times, y):
    def model():
        means, spreads = jnp.array([1, 0.05, 1, 0.05]), jnp.array([0.5, 0.05, 0.5, 0.05])
        rates = numpyro.sample("rates", dist.TruncatedNormal(means, spreads, low=0))
        start = numpyro.sample("start", dist.LogNormal(jnp.log(10), 1).expand([2]))
        sigma = numpyro.sample("sigma", dist.LogNormal(-1, 1).expand([2]))
        z = odeint(
            lambda z, t: jnp.stack(slope(t, z, rates)), start,
            jnp.concatenate([jnp.zeros(1), times]), rtol=1e-6, atol=1e-6, mxstep=1000,
        )[1:]  # fmt: skip
        numpyro.deterministic("z", z)
        numpyro.sample("y", dist.LogNormal(jnp.log(z), sigma), obs=y)

    return model, None


def stochastic_volatility(y):
    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        phi = numpyro.sample("phi", dist.Uniform(-1, 1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([y.size]))

        def step(last, each):
            here = phi * last + each
            return here, here

        first = z[0] / jnp.sqrt(1 - phi**2)
        _, rest = jax.lax.scan(step, first, z[1:])
        h = numpyro.deterministic("h", mu + sigma * jnp.concatenate([first[None], rest]))
        numpyro.sample("y", dist.Normal(0, jnp.exp(h / 2)), obs=y)

    return model, None


def hidden_markov(y):
    def forward(mu, sigma, rho, Gamma):
        terms = dist.Normal(mu, sigma).log_prob(y[:, None])

        def step(last, each):
            here = logsumexp(last[:, None] + jnp.log(Gamma), axis=0) + each
            return here, here

        first = jnp.log(rho) + terms[0]
        last, rest = jax.lax.scan(step, first, terms[1:])
        return last, jnp.concatenate([first[None], rest])

    def model():
        ordered = dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,))
        mu = numpyro.sample("mu", ordered)
        numpyro.factor("prior", dist.Normal(0, 3).log_prob(mu).sum())
        sigma = numpyro.sample("sigma", dist.HalfNormal(2))
        rho = numpyro.sample("rho", dist.Dirichlet(jnp.ones(2)))
        Gamma = numpyro.sample("Gamma", dist.Dirichlet(jnp.array([[8.0, 2.0], [2.0, 8.0]])))
        numpyro.factor("y", logsumexp(forward(mu, sigma, rho, Gamma)[0]))

    def states(key, mu, sigma, rho, Gamma):
        last, sums = forward(mu, sigma, rho, Gamma)
        key, here = jax.random.split(key)
        end = jax.random.categorical(here, last)

        def step(later, each):
            key, logs = each
            state = jax.random.categorical(key, logs + jnp.log(Gamma[:, later]))
            return state, state

        keys = jax.random.split(key, y.size - 1)
        _, before = jax.lax.scan(step, end, (keys, sums[:-1]), reverse=True)
        return jnp.concatenate([before, end[None]])

    return model, states


def ordinal(X, y):
    def model():
        beta = numpyro.sample("beta", dist.Normal(0, 1).expand([3]))
        ordered = dist.ImproperUniform(dist.constraints.ordered_vector, (), (3,))
        cut = numpyro.sample("cut", ordered)
        numpyro.factor("prior", dist.Normal(0, 3).log_prob(cut).sum())
        numpyro.sample("y", dist.OrderedLogistic(X @ beta, cut), obs=y - 1)

    return model, None


def zero_inflated(x, y):
    def model():
        alpha = numpyro.sample("alpha", dist.Normal(0, 2))
        beta = numpyro.sample("beta", dist.Normal(0, 1))
        psi = numpyro.sample("psi", dist.Beta(1, 1))
        counts = dist.Poisson(jnp.exp(alpha + beta * x))
        numpyro.sample("y", dist.ZeroInflatedDistribution(counts, gate=psi), obs=y)

    return model, None


def delayed_entry(X, entry, end, y):
    def model():
        shape = numpyro.sample("shape", dist.Gamma(2, 1))
        alpha = numpyro.sample("alpha", dist.Normal(0, 2))
        beta = numpyro.sample("beta", dist.Normal(0, 1).expand([2]))
        scale = jnp.exp(alpha + X @ beta)
        terms = jnp.where(y < end, dist.Weibull(scale, shape).log_prob(y), -((y / scale) ** shape))
        numpyro.factor("y", terms + (entry / scale) ** shape)

    return model, None


def switch_point(y):
    def terms(early, late):
        before = jnp.cumsum(dist.Poisson(early).log_prob(y))
        after = jnp.cumsum(dist.Poisson(late).log_prob(y))
        return before + after[-1] - after - jnp.log(y.size)

    def model():
        early = numpyro.sample("early", dist.Exponential(1))
        late = numpyro.sample("late", dist.Exponential(1))
        numpyro.factor("y", logsumexp(terms(early, late)))

    def last(key, early, late):
        return jax.random.categorical(key, terms(early, late))

    return model, last


def occupancy(x, visits, y):
    def model():
        alpha = numpyro.sample("alpha", dist.Normal(0, 2))
        beta = numpyro.sample("beta", dist.Normal(0, 1))
        detection = numpyro.sample("detection", dist.Beta(1, 1))
        empty = jax.nn.sigmoid(-alpha - beta * x)
        counts = dist.Binomial(visits, probs=detection)
        numpyro.sample("y", dist.ZeroInflatedDistribution(counts, gate=empty), obs=y)

    def present(key, alpha, beta, detection):
        odds = jnp.exp(alpha + beta * x) * (1 - detection) ** visits
        chance = jnp.where(y > 0, 1.0, odds / (1 + odds))
        return jax.random.bernoulli(key, chance)

    return model, present


def doses(times, events, y):
    moments, addition = events
    ends = [*moments[1:], np.inf]

    def amount(absorption, clearance, volume):
        state, found = jnp.zeros(2), []
        for begin, end in zip(moments, ends, strict=True):
            inside = times[(times > begin) & (times <= end)]
            stops = jnp.array([begin, *inside, *([end] if end < np.inf else [])])
            states = odeint(
                lambda z, t: jnp.stack(absorbed(t, z, absorption, clearance, volume)),
                state + addition, stops, rtol=1e-6, atol=1e-6,
            )  # fmt: skip
            found.append(states[1 : 1 + inside.size, 1])
            state = states[-1]
        return jnp.concatenate(found)

    def model():
        raw = numpyro.sample("raw", dist.Normal(0, 1).expand([3]))
        log_rates = numpyro.deterministic("log_rates", np.log([5, 50, 1]) + 0.5 * raw)
        clearance, volume, absorption = jnp.exp(log_rates)
        omega = numpyro.sample("omega", dist.HalfNormal(0.5))
        sigma = numpyro.sample("sigma", dist.HalfNormal(0.5))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([len(y)]))
        each = clearance * jnp.exp(omega * z)
        amounts = jax.vmap(amount, (None, 0, None))(absorption, each, volume)
        numpyro.sample("y", dist.LogNormal(jnp.log(amounts / volume), sigma), obs=y)

    return model, None


def sampler(made: Any, tune: int, kept: int, method: str) -> Callable[[int], dict[str, Any]]:
    """A function of a seed that samples four chains, with what varmat returns beside the draws: the
    log likelihood of each observation, and generated quantities.
    """
    model, quantities = made
    mcmc = MCMC(
        NUTS(model, init_strategy=init_to_uniform(radius=0.5)), num_warmup=tune, num_samples=kept,
        num_chains=4, chain_method=method,
        progress_bar=False,
    )  # fmt: skip
    of_each = jax.jit(jax.vmap(lambda key, values: quantities(key, **values)))

    def draws(seed: int) -> dict[str, Any]:
        key, other = jax.random.split(jax.random.PRNGKey(seed))
        mcmc.run(key)
        flat = mcmc.get_samples()
        more = [log_likelihood(model, flat)]
        if quantities is not None:
            more.append(of_each(jax.random.split(other, 4 * kept), flat))
        jax.block_until_ready(more)
        return {name: np.asarray(x) for name, x in mcmc.get_samples(group_by_chain=True).items()}

    return draws
