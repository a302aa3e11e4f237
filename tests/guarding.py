"""Guarded optimizers, and gradients to try them on."""

import functools

import jax
import jax.numpy as jnp
import optax

import resonance_jax as rj


def injected(momentum=0.99, learning_rate=0.1):
    return optax.inject_hyperparams(optax.sgd)(learning_rate=learning_rate, momentum=momentum)


def sgd(momentum=0.99, *, learning_rate=0.1, **options):
    return rj.resonance_guard(injected(momentum, learning_rate), **options)


def momentum_of(state, name="momentum"):
    return state.inner_state.hyperparams[name]


@functools.partial(jax.jit, static_argnums=0)
def follow(optimizer, gradients):
    """Weights and states after each of these gradients, one of which is shaped as the weights."""
    weights = jnp.zeros_like(gradients[0])

    def step(carry, gradient):
        updates, state = optimizer.update(gradient, carry[1], carry[0])
        after = optax.apply_updates(carry[0], updates), state
        return after, after

    return jax.lax.scan(step, (weights, optimizer.init(weights)), gradients)[1]


def heavy(seed, *shape):
    """As gradients on one sample, error times input: products of two normals."""
    one, other = jax.random.normal(jax.random.key(seed), (2, *shape))
    return one * other


def rising(rate, steps=200, before=0):
    """Sizes that grow by `rate` a step, after steps of size 1."""
    return jnp.exp(rate * jnp.concatenate([jnp.zeros(before), jnp.arange(1.0, steps + 1)]))
